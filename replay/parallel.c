// SPDX-License-Identifier: Apache-2.0
#include "replay/parallel.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

struct shared {
	void (*run)(void *context, size_t i);
	void *context;
	size_t n;
	atomic_size_t next;
};

static void *work(void *arg)
{
	struct shared *s = arg;
	for (size_t i; (i = atomic_fetch_add(&s->next, 1)) < s->n;)
		s->run(s->context, i);
	return NULL;
}

void parallel_run(size_t n, unsigned threads, void (*run)(void *context, size_t i),
                  void (*on_progress)(void *context, size_t started), void *context)
{
	struct shared s = {.run = run, .context = context, .n = n};
	pthread_t started[PARALLEL_THREADS_MAX];
	unsigned n_started = 0;
	atomic_init(&s.next, 0);
	while (n_started + 1 < threads && n_started + 1 < n && n_started < PARALLEL_THREADS_MAX &&
	       pthread_create(&started[n_started], NULL, work, &s) == 0)
		n_started++;
	for (size_t i; (i = atomic_fetch_add(&s.next, 1)) < n;) {
		run(context, i);
		if (on_progress)
			on_progress(context, i + 1);
	}
	for (unsigned i = 0; i < n_started; i++)
		pthread_join(started[i], NULL);
}

unsigned parallel_cores(void)
{
	cpu_set_t cores;
	int n = sched_getaffinity(0, sizeof cores, &cores) == 0 ? CPU_COUNT(&cores) : 1;
	return n < 1 ? 1 : n > PARALLEL_THREADS_MAX ? PARALLEL_THREADS_MAX : (unsigned)n;
}
