// SPDX-License-Identifier: Apache-2.0
#include "policies/test/step.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/json/json_write.h"
#include "policies/engine/decide.h"
#include "policies/engine/decision.h"
#include "policies/explain/explain.h"
#include "policies/schema/binding.h"
#include "policies/test/step_line.h"

#define STEP_ARENA_MAX (16 * 1024 * 1024) // memory for one line: 1 MiB of text is at most 5 MiB of series

struct step {
	const struct policy *policy; // policy of the binding
	const struct scale_target *target;
	void *state;
	struct arena line; // memory for the current line
	bool started;
	int64_t last_ms;
	int32_t last_replicas;
	struct step_line seen;
	struct decision decision;
};

struct step *step_new(const struct binding *binding)
{
	const struct policy *policy = binding->policy;
	struct step *s = calloc(1, sizeof *s);
	if (!s)
		return NULL;
	s->policy = policy;
	s->target = binding->target;
	arena_init(&s->line, STEP_ARENA_MAX);
	s->state = calloc(1, decide_state_bytes(policy));
	if (s->state) {
		decide_state_init(policy, s->state);
		return s;
	}
	step_free(s);
	return NULL;
}

void step_free(struct step *s)
{
	if (!s)
		return;
	arena_done(&s->line);
	free(s->state);
	free(s);
}

void step_put_error(struct buf *out, const char *msg)
{
	struct json_writer w;
	json_write_init(&w, out, 0);
	json_write_object_begin(&w);
	json_write_key(&w, "error");
	json_write_str(&w, msg);
	json_write_object_end(&w);
	buf_putc(out, '\n');
}

static int read_line(struct step *s, const char *line, size_t len, struct err *e)
{
	arena_reset(&s->line);
	if (step_line_parse(s->policy, line, len, &s->line, &s->seen, e) < 0)
		return -1;
	if (s->started && s->seen.time_ms < s->last_ms)
		return err_set(e, ERR_INPUT, "time goes back from %.3f to %.3f: a new run needs a new process",
		               (double)s->last_ms / 1000, (double)s->seen.time_ms / 1000);
	return 0;
}

int step_answer(struct step *s, const char *line, size_t len, struct buf *out, struct err *e)
{
	if (read_line(s, line, len, e) < 0) {
		step_put_error(out, e->msg);
		return -1;
	}
	int32_t replicas = s->seen.observation.spec_replicas;
	if (s->started && replicas != s->last_replicas)
		decide_record_scale(s->policy, s->state, s->last_ms, s->last_replicas, replicas);
	decide(s->policy, &s->seen.observation, s->seen.time_ms, s->state, &s->decision);
	s->started = true;
	s->last_ms = s->seen.time_ms;
	s->last_replicas = replicas;

	struct decided decided = {s->policy, s->target, &s->decision, s->seen.details, NULL};
	struct json_writer w;
	json_write_init(&w, out, 0);
	explain_decision_json(&w, &decided);
	buf_putc(out, '\n');
	return 0;
}
