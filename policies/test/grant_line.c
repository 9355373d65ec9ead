// SPDX-License-Identifier: Apache-2.0
// The allocator of a pool as a filter.
#include <cjson/cJSON.h>

#include "base/arena.h"
#include "base/base.h"
#include "base/json/json_read.h"
#include "base/json/json_write.h"
#include "policies/explain/explain.h"
#include "policies/test/filters.h"
#include "policies/test/line_fields.h"

#define TIME_MAX_S 253402300799.0 // 9999-12-31T23:59:59Z

// A member with what is converted for the allocator.
struct member_line {
	struct pool_member member;
	int32_t max_gpus;
	double weight, price;
};

#define MEMBER(name) offsetof(struct member_line, member.name)
static const struct line_field member_fields[] = {
        {.name = "name"},
        {"asked", LINE_WHOLE, 0, POOL_REPLICAS_MAX, MEMBER(asked)},
        {"current", LINE_WHOLE, 0, POOL_REPLICAS_MAX, MEMBER(current)},
        {"pending", LINE_WHOLE, 0, POOL_REPLICAS_MAX, MEMBER(pending)},
        {"min", LINE_WHOLE, 0, POOL_REPLICAS_MAX, MEMBER(min)},
        {"max", LINE_WHOLE, 0, POOL_REPLICAS_MAX, MEMBER(max)},
        {"maxMinReplicas", LINE_WHOLE, 0, POOL_REPLICAS_MAX, MEMBER(guaranteed)},
        {"maxGPUs", LINE_WHOLE, 1, POOL_GPUS_MAX, offsetof(struct member_line, max_gpus)},
        {"gpusPerReplica", LINE_WHOLE, 1, POOL_GPUS_PER_REPLICA_MAX, MEMBER(gpus_per_replica)},
        {"priority", LINE_WHOLE, -POOL_PRIORITY_MAX, POOL_PRIORITY_MAX, MEMBER(priority)},
        {"weight", LINE_NUMBER, 0.001, POOL_WEIGHT_MAX_MILLI / 1000.0, offsetof(struct member_line, weight)},
        {"pricePerGPU", LINE_NUMBER, 0, (double)POOL_PRICE_MAX_MICRO / 1e6, offsetof(struct member_line, price)},
        {.name = "backfill"},
};
static const struct line_field root_fields[] = {
        {.name = "time"}, {.name = "members"}, {.name = "spent"}, {.name = "runRate"}};

static int read_name(const cJSON *item, struct arena *a, const char **ret_name, struct err *e)
{
	if (!item || !cJSON_IsString(item) || !item->valuestring[0])
		return err_set(e, ERR_INPUT, "name must be a string: the name of the member");
	size_t len = strlen(item->valuestring);
	if (len > GRANT_NAME_BYTES_MAX)
		return err_set(e, ERR_LIMIT, "name has %zu bytes, the ceiling is %d", len, GRANT_NAME_BYTES_MAX);
	*ret_name = arena_strdup(a, item->valuestring);
	return *ret_name ? 0 : line_fields_no_memory(e);
}

// What rules a member that no entry matches: its line alone.
static const struct gpu_pool_entry no_entry = {
        .gpus_per_replica = 1, .weight = 1, .max_min_replicas = POOL_REPLICAS_MAX};

// The entry that rules a member called `name` or namespace/name.
static const struct gpu_pool_entry *find_entry(const struct gpu_pool *pool, const char *name)
{
	const char *slash = strchr(name, '/');
	char namespace_name[GRANT_NAME_BYTES_MAX + 1] = "";
	if (slash)
		memcpy(namespace_name, name, (size_t)(slash - name));
	const struct gpu_pool_entry *entry =
	        gpu_pool_claims(pool, slash ? namespace_name : NULL, slash ? slash + 1 : name, NULL);
	return entry ? entry : &no_entry;
}

static int read_numbers(const struct gpu_pool *pool, const struct gpu_pool_entry *entry, const cJSON *item,
                        struct pool_member *m, struct err *e)
{
	struct member_line v = {*m, entry->max_gpus, m->weight_milli / 1000.0, (double)m->price_micro / 1e6};
	v.member.max = POOL_REPLICAS_MAX;
	if (line_fields_numbers(item, "", LINE_FIELDS(member_fields), &v, e) < 0)
		return -1;
	*m = v.member;
	if (!line_field_of(item, "pending"))
		m->pending = m->current;
	if (m->min > m->max)
		return err_set(e, ERR_INPUT, "min is %d, larger than max, which is %d: lower it or raise max", m->min,
		               m->max);
	m->most = gpu_pool_most(pool, v.max_gpus, m->gpus_per_replica);
	m->weight_milli = (int32_t)gpu_pool_milli(v.weight);
	m->price_micro = gpu_pool_micro(v.price);
	return 0;
}

static int read_member(const struct gpu_pool *pool, const cJSON *item, struct arena *a, struct pool_member *m,
                       const char **ret_name, struct err *e)
{
	const cJSON *backfill = line_field_of(item, "backfill");
	*m = (struct pool_member){0};
	if (!cJSON_IsObject(item))
		return err_set(e, ERR_INPUT, "must be an object: {\"name\": \"chat\", \"asked\": 4, \"current\": 2}");
	if (line_fields_check(item, "field", LINE_FIELDS(member_fields), e) < 0 ||
	    read_name(line_field_of(item, "name"), a, ret_name, e) < 0)
		return -1;
	const struct gpu_pool_entry *entry = find_entry(pool, *ret_name);
	gpu_pool_apply(pool, entry, m);
	if (read_numbers(pool, entry, item, m, e) < 0)
		return -1;
	if (backfill && !cJSON_IsBool(backfill))
		return err_set(e, ERR_INPUT, "backfill must be true or false");
	if (backfill)
		m->backfill = cJSON_IsTrue(backfill);
	if (!line_field_of(item, "asked")) {
		m->asked = m->backfill ? pool_held(m) : m->current;
		m->is_fixed = !m->backfill;
	}
	return 0;
}

// A member that is given twice would count twice.
static int check_names(const char *const *names, size_t n, struct arena *a, struct err *e)
{
	char shown[LINE_SHOWN_BYTES];
	const char **sorted = (const char **)arena_calloc(a, n ? n : 1, sizeof *sorted);
	if (!sorted)
		return line_fields_no_memory(e);
	memcpy(sorted, names, n * sizeof *sorted);
	if (line_fields_sort_names(sorted, n, sizeof *sorted, shown))
		return err_set(e, ERR_INPUT, "members: \"%s\" is given twice", shown);
	return 0;
}

static int read_members(const struct gpu_pool *pool, const cJSON *list, struct arena *a, struct grant_line *line,
                        struct err *e)
{
	if (!list || !cJSON_IsArray(list))
		return err_set(e, ERR_INPUT,
		               "members must be a list: {\"members\": [{\"name\": \"chat\", \"asked\": 4}]}");
	size_t n = (size_t)cJSON_GetArraySize(list), i = 0;
	if (n > POOL_MEMBERS_MAX)
		return err_set(e, ERR_LIMIT, "members has %zu items, the ceiling is %d", n, POOL_MEMBERS_MAX);
	struct pool_member *members = arena_calloc(a, n ? n : 1, sizeof *members);
	line->names = (const char **)arena_calloc(a, n ? n : 1, sizeof *line->names);
	if (!members || !line->names)
		return line_fields_no_memory(e);
	for (const cJSON *c = list->child; c; c = c->next, i++)
		if (read_member(pool, c, a, &members[i], &line->names[i], e) < 0)
			return err_wrap(e, "members[%zu]", i);
	line->request.members = members;
	line->request.n_members = n;
	return check_names(line->names, n, a, e);
}

// Whether a member called `name` is the policy `key` (namespace/name).
static bool is_called(const char *name, const char *key)
{
	const char *slash = strchr(key, '/');
	return strcmp(name, key) == 0 || (slash && strcmp(name, slash + 1) == 0);
}

static size_t find_member(const struct grant_line *line, const char *key)
{
	size_t i = 0;
	while (i < line->request.n_members && !is_called(line->names[i], key))
		i++;
	return i;
}

// A ratio applies to lines with both of its members.
static int read_ratios(const struct gpu_pool *pool, struct arena *a, struct grant_line *line, struct err *e)
{
	struct pool_ratio *ratios = arena_calloc(a, pool->n_ratios ? pool->n_ratios : 1, sizeof *ratios);
	if (!ratios)
		return line_fields_no_memory(e);
	for (size_t i = 0; i < pool->n_ratios; i++) {
		const struct gpu_pool_ratio *r = &pool->ratios[i];
		size_t of = find_member(line, r->of), to = find_member(line, r->to);
		if (of < line->request.n_members && to < line->request.n_members && of != to)
			ratios[line->request.n_ratios++] =
			        (struct pool_ratio){of, to, gpu_pool_milli(r->min), gpu_pool_milli(r->max)};
	}
	line->request.ratios = ratios;
	return 0;
}

// An amount of money; POOL_SPENT_UNKNOWN when absent.
static int read_money(const cJSON *root, const char *name, int64_t *ret_micro, struct err *e)
{
	const cJSON *item = line_field_of(root, name);
	*ret_micro = POOL_SPENT_UNKNOWN;
	if (!item)
		return 0;
	if (!cJSON_IsNumber(item) || !(item->valuedouble >= 0 && item->valuedouble <= GRANT_MONEY_MAX))
		return err_set(e, ERR_INPUT, "%s must be an amount of money, a number from 0 to %.0f", name,
		               GRANT_MONEY_MAX);
	*ret_micro = gpu_pool_micro(item->valuedouble);
	return 0;
}

static int read_tree(const struct gpu_pool *pool, const cJSON *root, unsigned long long line_number, struct arena *a,
                     struct grant_line *line, struct err *e)
{
	const cJSON *time = line_field_of(root, "time");
	double time_s = (double)(line_number - 1) * GRANT_LINE_SECONDS;
	if (!cJSON_IsObject(root))
		return err_set(e, ERR_INPUT,
		               "a line must be an object: {\"members\": [{\"name\": \"chat\", \"asked\": 4}]}");
	if (line_fields_check(root, "field", LINE_FIELDS(root_fields), e) < 0)
		return -1;
	if (time) {
		time_s = cJSON_IsNumber(time) ? time->valuedouble : -1;
		if (!(time_s >= 0 && time_s <= TIME_MAX_S))
			return err_set(e, ERR_INPUT, "time must be a number of seconds from 0 to %.0f", TIME_MAX_S);
	}
	*line = (struct grant_line){
	        .request = {.gpus = pool->gpus, .turn = (uint64_t)(time_s * 1000 / (double)pool->turn_every_ms)}};
	int64_t spent_micro;
	if (read_money(root, "spent", &spent_micro, e) < 0 || read_money(root, "runRate", &line->rate_micro, e) < 0 ||
	    read_members(pool, line_field_of(root, "members"), a, line, e) < 0 || read_ratios(pool, a, line, e) < 0)
		return -1;
	line->month = gpu_pool_budget(pool, &line->request, (int64_t)(time_s * 1000), spent_micro, 0);
	return 0;
}

int grant_line_parse(const struct gpu_pool *pool, const char *text, size_t len, unsigned long long line_number,
                     struct arena *a, struct grant_line *ret_line, struct err *e)
{
	if (len > GRANT_LINE_BYTES_MAX)
		return err_set(e, ERR_LIMIT, "the line has %zu bytes, the ceiling is %d", len, GRANT_LINE_BYTES_MAX);
	cJSON *root = json_read(text, len, e);
	int rc = root ? read_tree(pool, root, line_number, a, ret_line, e) : -1;
	cJSON_Delete(root);
	return rc;
}

#define GRANT_ARENA_MAX (16 * 1024 * 1024) // memory for one line
#define MESSAGE_MAX     1024

struct grant {
	const struct gpu_pool *pool;
	bool explain;
	unsigned long long n_lines;
	struct arena line; // memory for the current line
};

struct grant *grant_new(const struct gpu_pool *pool, bool explain)
{
	struct grant *g = calloc(1, sizeof *g);
	if (!g)
		return NULL;
	g->pool = pool;
	g->explain = explain;
	arena_init(&g->line, GRANT_ARENA_MAX);
	return g;
}

void grant_free(struct grant *g)
{
	if (!g)
		return;
	arena_done(&g->line);
	free(g);
}

static void put_message(struct json_writer *w, const struct gpu_pool *pool, int32_t asked,
                        const struct pool_grant *grant, const struct pool_total *total)
{
	struct buf text;
	buf_init(&text, MESSAGE_MAX);
	explain_pool_grant(&text, pool->name, pool->gpus, asked, grant, total);
	json_write_member_str(w, "message", buf_str(&text));
	buf_done(&text);
}

static void put_month(struct json_writer *w, const struct grant_line *line)
{
	json_write_member_f64(w, "budgetPerHour", (double)line->request.budget_micro / 1e6);
	if (line->month.spent_micro == POOL_SPENT_UNKNOWN || line->rate_micro == POOL_SPENT_UNKNOWN)
		return;
	json_write_member_f64(w, "monthEnd", (double)pool_month_projection(&line->month, line->rate_micro) / 1e6);
}

static void put_grants(struct grant *g, const struct grant_line *line, const struct pool_grant *grants,
                       const struct pool_total *total, struct buf *out)
{
	struct json_writer w;
	json_write_init(&w, out, 0);
	json_write_format(&w, "{grants:[");
	for (size_t i = 0; i < line->request.n_members; i++) {
		json_write_format(&w, "{name:%s,replicas:%d,reason:%s", line->names[i], grants[i].replicas,
		                  pool_reasons[grants[i].reason].name);
		if (g->explain)
			put_message(&w, g->pool, line->request.members[i].asked, &grants[i], total);
		json_write_object_end(&w);
	}
	json_write_format(&w, "],usedGPUs:%ld", total->used_gpus);
	if (g->pool->has_per_month)
		put_month(&w, line);
	json_write_object_end(&w);
	buf_putc(out, '\n');
}

int grant_answer(void *grant, const char *line, size_t len, struct buf *out, struct err *e)
{
	struct grant *g = grant;
	struct grant_line parsed;
	struct pool_total total;
	arena_reset(&g->line);
	int rc = grant_line_parse(g->pool, line, len, ++g->n_lines, &g->line, &parsed, e);
	size_t n = rc == 0 ? parsed.request.n_members : 0;
	struct pool_grant *grants = rc == 0 ? arena_calloc(&g->line, n ? n : 1, sizeof *grants) : NULL;
	if (rc == 0 && !grants)
		rc = line_fields_no_memory(e);
	if (rc < 0) {
		struct err of_line = *e;
		err_wrap(&of_line, "line %llu", g->n_lines);
		line_fields_put_error(out, of_line.msg);
		return -1;
	}
	pool_allocate(&parsed.request, grants, &total);
	put_grants(g, &parsed, grants, &total, out);
	return 0;
}
