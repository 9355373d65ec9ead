// SPDX-License-Identifier: Apache-2.0
// learnt-status POLICY RATIO STARTUP: prints the policy in the file POLICY, which has an objective, with the status
// that a controller has after a simulated day in which a replica served RATIO of the figure in the queries and took
// STARTUP seconds to start. For the tests of commands that continue with it.
#include <math.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/num.h"
#include "base/text.h"
#include "policies/engine/decide.h"
#include "policies/load/file_set.h"
#include "replay/policy_candidate.h"
#include "replay/recording.h"
#include "replay/score.h"
#include "replay/world.h"

#define STEP_MS 5000
#define STEPS   (86400000 / STEP_MS)
#define START   (INT64_C(1767225600) * 1000) // 2026-01-01

static void play(const struct policy *policy, double ratio, double startup_s, struct policy_candidate *c)
{
	static double work[STEPS];
	static const char *const names[ORIGIN_SIMULATED];
	static struct score score;
	static struct world_config world;
	const struct demand demand = {.work = work, .n = STEPS, .step_ms = STEP_MS, .start_ms = START};
	const struct closed_loop loop = {.demand = &demand, .world = &world, .first = 4, .max = 64, .late_s = 10};
	struct err e;
	world = (struct world_config){
	        .step_ms = STEP_MS, .startups_s = {startup_s}, .n_startups = 1, .capacity_ratio = ratio};
	for (int i = 0; i < STEPS; i++) // 1 to 9 replicas within the hour, with a burst of a minute in each
		work[i] = (5 - 4 * cos(i * STEP_MS / 3.6e6 * 2 * 3.14159265) + (i % 720 < 12 ? 8 : 0)) * STEP_MS / 1000;
	if (policy_candidate_init(c, policy, &(struct candidate_input){.file = "", .names = names, .start_ms = START},
	                          &e) < 0) {
		fprintf(stderr, "learnt-status: %s\n", e.msg);
		exit(1);
	}
	const struct candidate candidate = {policy_candidate_decide, c, 15000};
	if (closed_loop_run(&loop, &candidate, &score) < 0)
		exit(1);
}

int main(int argc, char **argv)
{
	static struct policy_candidate c;
	static unsigned char bytes[DECIDE_OBJECTIVE_BYTES_MAX];
	static char text[TEXT_BASE64_BYTES(DECIDE_OBJECTIVE_BYTES_MAX)];
	struct file_set set;
	struct buf file;
	struct err e = {0};
	double ratio = 1, startup_s = 0;
	buf_init(&file, 1 << 20);
	if (argc != 4 || num_parse_f64(argv[2], strlen(argv[2]), &ratio, &e) < 0 ||
	    num_parse_f64(argv[3], strlen(argv[3]), &startup_s, &e) < 0 ||
	    file_set_load(&set, (const char *const *)&argv[1], 1, NULL, &file, &e) < 0 || set.n_policies != 1) {
		fprintf(stderr, "usage: learnt-status POLICY RATIO STARTUP: %s%s\n", e.msg, buf_str(&file));
		return 2;
	}
	play(set.policies[0], ratio, startup_s, &c);
	size_t n = decide_objective_save(set.policies[0], c.state, bytes);
	EVP_EncodeBlock((unsigned char *)text, bytes, (int)n);
	buf_reset(&file);
	if (buf_read_file(&file, argv[1], &e) < 0)
		return 1;
	printf("%sstatus:\n  observedGeneration: 1\n  startupSeconds: %lld\n  objectiveRecord: %s\n", buf_str(&file),
	       (long long)(decide_startup_ms(set.policies[0], c.state) + 999) / 1000, text);
	fprintf(stderr, "learnt %.3f\n", decide_objective_capacity(set.policies[0], c.state));
	policy_candidate_done(&c);
	file_set_done(&set);
	buf_done(&file);
	return 0;
}
