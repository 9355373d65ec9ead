// SPDX-License-Identifier: Apache-2.0
// Goal of this test: the jobs of a GPU follow its file, a file that is not valid changes nothing, and every ceiling
// holds.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/err.h"
#include "exporter/device.h"
#include "exporter/hpc_jobs.h"
#include "exporter/kubelet/pod_resources.h"
#include "exporter/page/render_page.h"
#include "exporter/xid.h"

#define GPUS 64

struct fixture {
	char dir[64];
	struct hpc_jobs *jobs;
	int64_t wall_ms;
};

static int set_up(void **state)
{
	static struct fixture f;
	struct err e;
	snprintf(f.dir, sizeof f.dir, "/tmp/gpuscale-jobs-XXXXXX");
	assert_non_null(mkdtemp(f.dir));
	f.jobs = hpc_jobs_new(f.dir, NULL, &e);
	assert_non_null(f.jobs);
	f.wall_ms = (int64_t)time(NULL) * 1000;
	*state = &f;
	return 0;
}

static int tear_down(void **state)
{
	struct fixture *f = *state;
	hpc_jobs_free(f->jobs);
	DIR *dir = opendir(f->dir);
	const struct dirent *entry;
	while ((entry = readdir(dir)))
		unlinkat(dirfd(dir), entry->d_name, 0);
	closedir(dir);
	return rmdir(f->dir);
}

// Replaces the file of a GPU, as `mv` does; NULL removes it.
static void write_file(struct fixture *f, int index, const char *text)
{
	char path[80], fresh[80];
	snprintf(path, sizeof path, "%s/%d", f->dir, index);
	snprintf(fresh, sizeof fresh, "%s/new", f->dir);
	if (!text) {
		assert_int_equal(unlink(path), 0);
		return;
	}
	FILE *out = fopen(fresh, "w");
	assert_non_null(out);
	assert_int_equal(fputs(text, out) >= 0 && fclose(out) == 0, 1);
	assert_int_equal(rename(fresh, path), 0);
}

static void jobs_are(struct fixture *f, int32_t index, const char *want)
{
	static struct device devices[GPUS];
	char got[2048] = "";
	for (int i = 0; i < GPUS; i++)
		devices[i] = (struct device){.index = i};
	hpc_jobs_refresh(f->jobs, devices, GPUS, f->wall_ms);
	for (size_t i = 0; i < hpc_jobs_count(f->jobs, (size_t)index); i++)
		snprintf(got + strlen(got), sizeof got - strlen(got), "%s,", hpc_jobs_id(f->jobs, (size_t)index, i));
	assert_string_equal(got, want);
}

static void jobs_follow_the_files(void **state)
{
	struct fixture *f = *state;
	jobs_are(f, 0, "");
	write_file(f, 0, "4711\n4712.batch\n");
	write_file(f, 7, "  99 \r\n\n99\n100"); // blanks, a repetition, no newline at the end
	jobs_are(f, 0, "4711,4712.batch,");
	jobs_are(f, 7, "99,100,");
	jobs_are(f, 1, "");
	write_file(f, 0, "5000\n");
	jobs_are(f, 0, "5000,");
	write_file(f, 0, ""); // truncated by the epilog
	jobs_are(f, 0, "");
	write_file(f, 0, "1\n");
	jobs_are(f, 0, "1,");
	write_file(f, 0, NULL);
	jobs_are(f, 0, "");
}

static void invalid_file_changes_nothing(void **state)
{
	struct fixture *f = *state;
	char large[HPC_JOBS_FILE_BYTES + 100];
	memset(large, '\n', sizeof large);
	large[sizeof large - 1] = '\0';
	write_file(f, 0, "1\n");
	jobs_are(f, 0, "1,");
	static const char *const invalid[] = {"2 3\n", "\xff\n", "a\tb\n",
	                                      "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\n",
	                                      "1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n11\n12\n13\n14\n15\n16\n17\n"};
	for (size_t i = 0; i < sizeof invalid / sizeof invalid[0]; i++) {
		write_file(f, 0, invalid[i]);
		jobs_are(f, 0, "1,");
	}
	write_file(f, 0, large);
	jobs_are(f, 0, "1,");
	write_file(f, 0, "2\n");
	jobs_are(f, 0, "2,");
}

// A user who may write in the folder links a GPU's file to one that only the exporter may read.
static void linked_file_is_not_read(void **state)
{
	struct fixture *f = *state;
	char path[80], secret[80];
	write_file(f, 0, "1\n");
	jobs_are(f, 0, "1,");
	snprintf(secret, sizeof secret, "%s/63", f->dir); // any other file
	write_file(f, 63, "secret\n");
	jobs_are(f, 63, "secret,");
	snprintf(path, sizeof path, "%s/0", f->dir);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(symlink(secret, path), 0);
	jobs_are(f, 0, "1,");
	assert_int_equal(unlink(path), 0);
	jobs_are(f, 0, "");
	assert_int_equal(link(secret, path), 0);
	jobs_are(f, 0, "");
	assert_int_equal(unlink(path), 0);
	assert_int_equal(mkfifo(path, 0600), 0);
	jobs_are(f, 0, "");
	write_file(f, 0, "2\n");
	jobs_are(f, 0, "2,");
}

static void file_of_another_user_is_not_read(void **state)
{
	struct fixture *f = *state;
	char path[80];
	if (geteuid() != 0)
		skip(); // only root can give a file away
	snprintf(path, sizeof path, "%s/0", f->dir);
	write_file(f, 0, "1\n");
	assert_int_equal(chown(path, 65534, 65534), 0);
	jobs_are(f, 0, "");
	assert_int_equal(chown(f->dir, 65534, 65534), 0); // the owner of the folder
	jobs_are(f, 0, "1,");
	write_file(f, 0, "2\n"); // root in a folder of another user
	jobs_are(f, 0, "2,");
}

static void folder_in_which_every_user_replaces_files_is_not_read(void **state)
{
	struct fixture *f = *state;
	write_file(f, 0, "1\n");
	assert_int_equal(chmod(f->dir, 0777), 0);
	jobs_are(f, 0, "");
	assert_int_equal(chmod(f->dir, 01777), 0);
	jobs_are(f, 0, "1,");
}

// Two changes of the same length within one tick of the file system's clock leave the same stamp.
static void second_change_within_a_tick_is_found(void **state)
{
	struct fixture *f = *state;
	char path[80];
	const struct timespec same[2] = {{.tv_sec = 1700000000}, {.tv_sec = 1700000000}};
	write_file(f, 0, "11\n");
	snprintf(path, sizeof path, "%s/0", f->dir);
	assert_int_equal(utimensat(0, path, same, 0), 0);
	f->wall_ms = 1700000000000 + HPC_JOBS_QUIET_MS;
	jobs_are(f, 0, "11,");
	FILE *out = fopen(path, "r+");
	assert_non_null(out);
	assert_int_equal(fputs("22\n", out) >= 0 && fclose(out) == 0, 1);
	assert_int_equal(utimensat(0, path, same, 0), 0);
	f->wall_ms += 1;
	jobs_are(f, 0, "22,");
}

static void put_named(struct fixture *f, const char *name, const char *text)
{
	char path[80];
	snprintf(path, sizeof path, "%s/%s", f->dir, name);
	FILE *out = fopen(path, "w");
	assert_non_null(out);
	assert_int_equal(fputs(text, out) >= 0 && fclose(out) == 0, 1);
}

// The jobs of GPU 3, of its instances 1, 2 and 13, and of GPU 4, as "a,b|c|..".
static void all_jobs_are(struct fixture *f, const char *want)
{
	static const struct device devices[] = {{.index = 3, .uuid = "GPU-a"},
	                                        {.index = 3, .uuid = "GPU-a", .mig_id = "1"},
	                                        {.index = 3, .uuid = "GPU-a", .mig_id = "2"},
	                                        {.index = 3, .uuid = "GPU-a", .mig_id = "13"},
	                                        {.index = 4, .uuid = "GPU-b"}};
	char got[512] = "";
	hpc_jobs_refresh(f->jobs, devices, 5, f->wall_ms);
	for (size_t i = 0; i < 5; i++) {
		for (size_t k = 0; k < hpc_jobs_count(f->jobs, i); k++)
			snprintf(got + strlen(got), sizeof got - strlen(got), "%s,", hpc_jobs_id(f->jobs, i, k));
		snprintf(got + strlen(got), sizeof got - strlen(got), "|");
	}
	assert_string_equal(got, want);
}

static void instance_has_the_jobs_of_its_file(void **state)
{
	struct fixture *f = *state;
	all_jobs_are(f, "|||||");
	put_named(f, "3.1", "201\n");
	put_named(f, "3.13", "213\n214\n");
	put_named(f, "4.1", "999\n"); // there is no such instance
	all_jobs_are(f, "|201,||213,214,||");
	put_named(f, "3", "100\n"); // instances without a file have the jobs of their GPU
	all_jobs_are(f, "100,|201,|100,|213,214,||");
	put_named(f, "3.2", ""); // no job
	all_jobs_are(f, "100,|201,||213,214,||");
	// The GPU is split anew: no instance keeps the jobs of the one that had its position.
	static const struct device devices[] = {{.index = 3, .uuid = "GPU-a"},
	                                        {.index = 3, .uuid = "GPU-a", .mig_id = "9"}};
	hpc_jobs_refresh(f->jobs, devices, 2, f->wall_ms);
	assert_int_equal(hpc_jobs_count(f->jobs, 1), 1);
	assert_string_equal(hpc_jobs_id(f->jobs, 1, 0), "100");
}

static void each_job_has_a_series(void **state)
{
	struct fixture *f = *state;
	struct err e;
	struct buf out;
	struct render_page r;
	struct xid_store *xids = xid_store_new(&e);
	struct device devices[2] = {{.index = 0, .uuid = "GPU-a"}, {.index = 1, .uuid = "GPU-b"}};
	struct device_sample samples[2] = {{0}};
	const struct pod_share pod = {.namespace_ = "ml", .pod = "p", .container = "c", .replica = -1};
	sample_set_i64(&samples[0], FIELD_GPU_UTIL, 5);
	sample_set_i64(&samples[1], FIELD_GPU_UTIL, 6);
	write_file(f, 0, "11\n12\n");
	const struct render_page_options o = {
	        .hostname_label = "Hostname", .hostname = "", .sidecar_of = &pod, .jobs = f->jobs, .xids = xids};
	const struct sampler_round round = {.devices = devices, .samples = samples, .n = 2, .driver_version = ""};
	render_page_init(&r, &o);
	buf_init(&out, 1024 * 1024);
	render_page_round(&r, &round, &out);
	static const char want[] = "DCGM_FI_DEV_GPU_UTIL{gpu=\"0\",UUID=\"GPU-a\",container=\"c\",hpc_job=\"11\","
	                           "namespace=\"ml\",pod=\"p\"} 5\n"
	                           "DCGM_FI_DEV_GPU_UTIL{gpu=\"0\",UUID=\"GPU-a\",container=\"c\",hpc_job=\"12\","
	                           "namespace=\"ml\",pod=\"p\"} 5\n"
	                           "DCGM_FI_DEV_GPU_UTIL{gpu=\"1\",UUID=\"GPU-b\",container=\"c\","
	                           "namespace=\"ml\",pod=\"p\"} 6\n";
	const char *at = strstr(buf_str(&out), "DCGM_FI_DEV_GPU_UTIL{");
	assert_non_null(at);
	assert_memory_equal(at, want, sizeof want - 1);
	render_page_done(&r);
	buf_done(&out);
	xid_store_free(xids);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test_setup_teardown(jobs_follow_the_files, set_up, tear_down),
	        cmocka_unit_test_setup_teardown(invalid_file_changes_nothing, set_up, tear_down),
	        cmocka_unit_test_setup_teardown(linked_file_is_not_read, set_up, tear_down),
	        cmocka_unit_test_setup_teardown(file_of_another_user_is_not_read, set_up, tear_down),
	        cmocka_unit_test_setup_teardown(folder_in_which_every_user_replaces_files_is_not_read, set_up,
	                                        tear_down),
	        cmocka_unit_test_setup_teardown(second_change_within_a_tick_is_found, set_up, tear_down),
	        cmocka_unit_test_setup_teardown(instance_has_the_jobs_of_its_file, set_up, tear_down),
	        cmocka_unit_test_setup_teardown(each_job_has_a_series, set_up, tear_down),
	};
	return cmocka_run_group_tests_name("exporter_jobs", tests, NULL, NULL);
}
