// SPDX-License-Identifier: Apache-2.0
#include "k8s/lease/lease_rules.h"

#include "base/base.h"

#define REQUEST_TIMEOUT_MIN_MS 100
#define WRITE_TIMEOUT_MIN_MS   50

int lease_timing_check(const struct lease_timing *t, struct err *e)
{
	char a[NUM_TEXT_BYTES], b[NUM_TEXT_BYTES];
	num_format_duration_ms(a, t->renew_deadline_ms);
	if (t->duration_ms < 1000)
		return err_set(e, ERR_USAGE, "--lease-duration must be at least 1s: Kubernetes counts it in seconds");
	if (t->duration_ms % 1000 != 0)
		return err_set(e, ERR_USAGE,
		               "--lease-duration must be a whole number of seconds: Kubernetes counts it so");
	if (t->retry_period_ms < 1 || t->renew_deadline_ms < 1)
		return err_set(e, ERR_USAGE, "--renew-deadline and --retry-period must be greater than 0");
	num_format_duration_ms(b, t->duration_ms);
	if (t->duration_ms <= t->renew_deadline_ms)
		return err_set(e, ERR_USAGE, "--lease-duration (%s) must be greater than --renew-deadline (%s)", b, a);
	num_format_duration_ms(b, t->retry_period_ms);
	if ((double)t->renew_deadline_ms <= LEASE_JITTER_RATIO * (double)t->retry_period_ms)
		return err_set(e, ERR_USAGE,
		               "--renew-deadline (%s) must be greater than %.1f times --retry-period (%s)", a,
		               LEASE_JITTER_RATIO, b);
	return 0;
}

int64_t lease_request_timeout_ms(const struct lease_timing *t)
{
	int64_t ms = t->renew_deadline_ms / 2;
	return ms > REQUEST_TIMEOUT_MIN_MS ? ms : REQUEST_TIMEOUT_MIN_MS;
}

int64_t lease_write_timeout_ms(const struct lease_timing *t)
{
	int64_t ms = (t->duration_ms - t->renew_deadline_ms) / 2;
	return ms > WRITE_TIMEOUT_MIN_MS ? ms : WRITE_TIMEOUT_MIN_MS;
}

void lease_state_init(struct lease_state *s, const struct lease_timing *timing, const char *identity)
{
	size_t len = strlen(identity);
	assert(len > 0 && len < sizeof s->identity);
	*s = (struct lease_state){.timing = *timing};
	memcpy(s->identity, identity, len + 1);
}

bool lease_state_is_own(const struct lease_state *s)
{
	if (!s->exists || strcmp(s->record.holder, s->identity) != 0)
		return false;
	const char *stamp = s->record.renew_stamp;
	return strcmp(s->record.version, s->own_version) == 0 ||
	       (stamp[0] && (strcmp(stamp, s->own_stamp) == 0 || strcmp(stamp, s->tried_stamp) == 0));
}

void lease_state_observe(struct lease_state *s, const struct lease_record *record, int64_t now_ms)
{
	bool changed = !s->is_known || s->exists != (record != NULL) ||
	               (record && strcmp(s->record.version, record->version) != 0);
	if (changed)
		s->seen_ms = now_ms;
	s->is_known = true;
	s->exists = record != NULL;
	if (record)
		s->record = *record;
	if (s->valid_from_ms == INT64_MAX && lease_state_is_own(s))
		s->valid_from_ms = now_ms + s->timing.duration_ms; // the lease that we created
}

int64_t lease_state_acquirable_at_ms(const struct lease_state *s)
{
	if (!s->is_known)
		return INT64_MAX;
	if (!s->exists || !s->record.holder[0] || lease_state_is_own(s))
		return s->seen_ms;
	// Its holder may use a longer duration. client-go uses the duration of the record, too.
	int64_t wait_ms = s->timing.duration_ms;
	if (s->record.duration_ms > wait_ms)
		wait_ms = s->record.duration_ms;
	return s->seen_ms + wait_ms;
}

void lease_state_trying(struct lease_state *s, const char *stamp, bool creates, int64_t now_ms)
{
	if (creates)
		s->valid_from_ms = INT64_MAX; // one duration after it is known to exist: lease_state_observe
	else if (!lease_state_is_own(s))
		s->valid_from_ms = now_ms; // the lease of another process, which has expired
	snprintf(s->tried_stamp, sizeof s->tried_stamp, "%s", stamp);
	s->tried_ms = now_ms;
}

void lease_state_wrote(struct lease_state *s, const struct lease_record *record, int64_t now_ms)
{
	memcpy(s->own_version, record->version, sizeof s->own_version);
	memcpy(s->own_stamp, s->tried_stamp, sizeof s->own_stamp);
	lease_state_observe(s, record, now_ms);
	s->is_held = true;
	s->valid_until_ms = s->tried_ms + s->timing.renew_deadline_ms;
}

void lease_state_drop(struct lease_state *s)
{
	s->is_held = false;
	s->valid_until_ms = 0;
}

int64_t lease_state_valid_for_ms(const struct lease_state *s, int64_t now_ms)
{
	if (!s->is_held || now_ms < s->valid_from_ms || now_ms >= s->valid_until_ms)
		return 0;
	return s->valid_until_ms - now_ms;
}
