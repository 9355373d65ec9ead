// SPDX-License-Identifier: Apache-2.0
// The store of policies: what is in force after good, bad and missing versions, from files and objects; who has a
// target; and that each change reports what it changed and nothing else.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/err.h"
#include "controller/source/policy_store.h"
#include "policies/load/policy_ref.h"

#define NEWS_BYTES 4096

struct fixture {
	struct policy_store *store;
	char news[NEWS_BYTES]; // "+name" per change, "-name" per removal, "x-name" when its object was deleted
	struct err e;
};

static void say(struct fixture *f, const char *what, const struct policy_entry *entry)
{
	size_t used = strlen(f->news);
	snprintf(f->news + used, sizeof f->news - used, "%s%s%s", used ? " " : "", what, entry->name);
}

static void on_change(void *arg, struct stored_binding *b)
{
	say(arg, "+", b->entry);
}

static void on_remove(void *arg, struct stored_binding *b, bool deleted)
{
	say(arg, deleted ? "x-" : "-", b->entry);
}

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof *f);
	struct policy_listener listener = {on_change, on_remove, f};
	f->store = policy_store_new(&listener);
	assert_non_null(f->store);
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;
	policy_store_free(f->store);
	free(f);
	return 0;
}

static void assert_news(struct fixture *f, const char *want)
{
	assert_string_equal(f->news, want);
	f->news[0] = '\0';
}

static struct policy_ref *body(const char *name, const char *target, int32_t max)
{
	struct policy_ref *b = policy_ref_new();
	assert_non_null(b);
	b->policy = (struct policy){
	        .namespace_name = "serving", .name = arena_strdup(&b->arena, name), .max_replicas = max};
	b->target = (struct scale_target){"apps/v1", "Deployment", arena_strdup(&b->arena, target), NULL};
	return b;
}

static struct policy_identity identity(const char *uid, int64_t generation, int64_t created_ms)
{
	struct policy_identity id = {.generation = generation, .created_ms = created_ms};
	snprintf(id.uid, sizeof id.uid, "%s", uid);
	return id;
}

static void put_object(struct fixture *f, const char *name, const char *target, int32_t max, int64_t created_ms)
{
	struct policy_identity id = identity(name, max, created_ms);
	assert_int_equal(policy_store_put(f->store, POLICY_FROM_OBJECT, body(name, target, max), &id, &f->e), 0);
}

static void put_file(struct fixture *f, const char *name, const char *target, int32_t max)
{
	assert_int_equal(policy_store_put(f->store, POLICY_FROM_FILE, body(name, target, max), NULL, &f->e), 0);
}

static void put_bad(struct fixture *f, const char *name, const char *error)
{
	struct policy_identity id = identity(name, 99, 1);
	assert_int_equal(policy_store_put_bad(f->store, POLICY_FROM_OBJECT, "serving", name, &id, error, &f->e), 0);
}

static struct policy_entry *find(struct fixture *f, const char *name)
{
	return policy_store_find(f->store, "serving", name);
}

static int32_t max_of(struct fixture *f, const char *name)
{
	const struct policy_entry *e = find(f, name);
	return e && e->body ? e->body->policy.max_replicas : -1;
}

static const char *winner_of(struct fixture *f, const char *name)
{
	const struct stored_binding *w = stored_binding_winner(find(f, name)->bindings[0]);
	return w ? w->entry->name : "";
}

// ---- versions ----

static void new_version_replaces_the_one_before(void **state)
{
	struct fixture *f = *state;
	put_object(f, "a", "t", 4, 1);
	put_object(f, "a", "t", 5, 1);
	assert_int_equal(max_of(f, "a"), 5);
	assert_news(f, "+a +a");
	assert_null(policy_store_find(f->store, "other", "a"));
}

static void repeated_version_changes_nothing(void **state)
{
	struct fixture *f = *state;
	put_object(f, "a", "t", 4, 1);
	assert_news(f, "+a");
	struct policy_identity id = identity("a", 4, 1);
	id.has_status = true;
	struct policy_ref *same = policy_ref_acquire(find(f, "a")->body);
	assert_int_equal(policy_store_put(f->store, POLICY_FROM_OBJECT, same, &id, &f->e), 0);
	assert_news(f, "");
	assert_true(find(f, "a")->versions[POLICY_FROM_OBJECT].identity->has_status);
	id.generation = 5; // observedGeneration has to follow
	same = policy_ref_acquire(find(f, "a")->body);
	assert_int_equal(policy_store_put(f->store, POLICY_FROM_OBJECT, same, &id, &f->e), 0);
	assert_news(f, "+a");
}

static void bad_version_leaves_the_last_good_one_in_force(void **state)
{
	struct fixture *f = *state;
	struct policy_counts counts;
	put_object(f, "a", "t", 4, 1);
	put_bad(f, "a", "spec.maxReplicas: no");
	assert_news(f, "+a +a");
	assert_int_equal(max_of(f, "a"), 4);
	assert_string_equal(policy_entry_error(find(f, "a")), "spec.maxReplicas: no");
	counts = *policy_store_counts(f->store);
	assert_int_equal(counts.invalid, 1);
	assert_int_equal(counts.in_force, 1);
	put_bad(f, "a", "spec.maxReplicas: no");
	assert_news(f, ""); // reported already
	put_object(f, "a", "t", 6, 1);
	assert_news(f, "+a");
	assert_string_equal(policy_entry_error(find(f, "a")), "");
	counts = *policy_store_counts(f->store);
	assert_int_equal(counts.invalid, 0);
}

static void policy_that_was_never_valid_is_known_and_not_in_force(void **state)
{
	struct fixture *f = *state;
	struct policy_counts counts;
	put_bad(f, "a", "spec: no");
	assert_news(f, "+a");
	assert_null(find(f, "a")->body);
	assert_null(stored_binding_winner(find(f, "a")->bindings[0]));
	assert_string_equal(policy_entry_error(find(f, "a")), "spec: no");
	counts = *policy_store_counts(f->store);
	assert_int_equal(counts.entries, 1);
	assert_int_equal(counts.in_force, 0);
	policy_store_remove(f->store, POLICY_FROM_OBJECT, "serving", "a");
	assert_news(f, "x-a");
	counts = *policy_store_counts(f->store);
	assert_int_equal(counts.entries, 0);
	assert_int_equal(counts.invalid, 0);
}

static void object_goes_before_a_file_of_its_name(void **state)
{
	struct fixture *f = *state;
	put_file(f, "a", "t", 4);
	put_object(f, "a", "t", 5, 1);
	assert_int_equal(max_of(f, "a"), 5);
	put_file(f, "a", "t", 7);
	assert_int_equal(max_of(f, "a"), 5);
	assert_int_equal(find(f, "a")->source, POLICY_FROM_OBJECT);
	f->news[0] = '\0';
	policy_store_remove(f->store, POLICY_FROM_OBJECT, "serving", "a");
	assert_news(f, "+a"); // the file takes its place
	assert_int_equal(max_of(f, "a"), 7);
	policy_store_remove(f->store, POLICY_FROM_FILE, "serving", "a");
	assert_news(f, "-a");
	assert_null(find(f, "a"));
}

static void bad_object_never_replaces_a_good_file(void **state)
{
	struct fixture *f = *state;
	put_file(f, "a", "t", 4);
	put_bad(f, "a", "spec: no");
	assert_int_equal(max_of(f, "a"), 4);
	assert_int_equal(find(f, "a")->source, POLICY_FROM_FILE);
}

static void object_recreated_under_its_name_is_a_new_policy(void **state)
{
	struct fixture *f = *state;
	put_object(f, "a", "t", 4, 1);
	struct policy_identity id = identity("second", 1, 9);
	assert_int_equal(policy_store_put(f->store, POLICY_FROM_OBJECT, body("a", "t", 5), &id, &f->e), 0);
	assert_news(f, "+a -a +a");
	assert_int_equal(max_of(f, "a"), 5);
}

// ---- targets ----

static void of_two_objects_for_one_target_the_older_has_it(void **state)
{
	struct fixture *f = *state;
	put_object(f, "young", "t", 4, 200);
	assert_string_equal(winner_of(f, "young"), "young");
	assert_news(f, "+young");
	put_object(f, "old", "t", 4, 100);
	assert_string_equal(winner_of(f, "young"), "old");
	assert_string_equal(winner_of(f, "old"), "old");
	assert_news(f, "+young +old"); // the policy that lost it is reported
	put_object(f, "younger", "t", 4, 300);
	assert_news(f, "+younger");
	policy_store_remove(f->store, POLICY_FROM_OBJECT, "serving", "old");
	assert_string_equal(winner_of(f, "younger"), "young");
	assert_news(f, "+young +younger x-old");
}

static void equally_old_policies_are_ordered_by_name_with_objects_before_files(void **state)
{
	struct fixture *f = *state;
	put_object(f, "b", "t", 4, 100);
	put_object(f, "a", "t", 4, 100);
	put_file(f, "0", "t", 4);
	assert_string_equal(winner_of(f, "b"), "a");
	assert_string_equal(winner_of(f, "0"), "a");
}

static void policy_that_turns_to_another_target_leaves_the_first(void **state)
{
	struct fixture *f = *state;
	put_object(f, "a", "t", 4, 100);
	put_object(f, "b", "t", 4, 200);
	f->news[0] = '\0';
	put_object(f, "a", "u", 5, 100);
	assert_string_equal(winner_of(f, "b"), "b");
	assert_string_equal(winner_of(f, "a"), "a");
	assert_news(f, "+b +a");
	put_object(f, "a", "t", 6, 100); // and back
	assert_string_equal(winner_of(f, "b"), "a");
	assert_news(f, "+b +a");
}

static void target_of_another_kind_with_the_same_name_is_another_target(void **state)
{
	struct fixture *f = *state;
	put_object(f, "a", "t", 4, 100);
	struct policy_ref *b = body("b", "t", 4);
	b->target.kind = "StatefulSet";
	struct policy_identity id = identity("b", 1, 200);
	assert_int_equal(policy_store_put(f->store, POLICY_FROM_OBJECT, b, &id, &f->e), 0);
	assert_string_equal(winner_of(f, "b"), "b");
}

// ---- many ----

static int put_many(struct fixture *f, enum policy_source source, int from, int to)
{
	int rc = 0;
	for (int i = from; i < to; i++) {
		char name[32];
		snprintf(name, sizeof name, "p%d", i);
		struct policy_identity id = identity(name, 1, i);
		const struct policy_identity *of = source == POLICY_FROM_OBJECT ? &id : NULL;
		rc = policy_store_put(f->store, source, body(name, name, 4), of, &f->e);
		f->news[0] = '\0';
	}
	return rc;
}

static void objects_of_one_namespace_leave_room_for_another(void **state)
{
	struct fixture *f = *state;
	assert_int_equal(put_many(f, POLICY_FROM_OBJECT, 0, POLICY_STORE_NAMESPACE_MAX), 0);
	assert_int_equal(put_many(f, POLICY_FROM_OBJECT, POLICY_STORE_MAX, POLICY_STORE_MAX + 1), -1);
	assert_int_equal(f->e.kind, ERR_LIMIT);
	assert_string_equal(f->e.msg,
	                    "policy serving/p20000 is one more than the ceiling of 15000 objects of namespace "
	                    "\"serving\"");
	struct policy_ref *b = body("mine", "t", 4);
	b->policy.namespace_name = "other";
	struct policy_identity id = identity("mine", 1, 1);
	assert_int_equal(policy_store_put(f->store, POLICY_FROM_OBJECT, b, &id, &f->e), 0);
	policy_store_remove(f->store, POLICY_FROM_OBJECT, "serving", "p0");
	assert_int_equal(put_many(f, POLICY_FROM_OBJECT, POLICY_STORE_MAX, POLICY_STORE_MAX + 1), 0);
	f->news[0] = '\0';
}

static void as_many_as_the_ceiling_fit_and_no_more(void **state)
{
	struct fixture *f = *state;
	assert_int_equal(put_many(f, POLICY_FROM_FILE, 0, POLICY_STORE_MAX), 0);
	assert_int_equal(put_many(f, POLICY_FROM_FILE, POLICY_STORE_MAX, POLICY_STORE_MAX + 1), -1);
	assert_int_equal(f->e.kind, ERR_LIMIT);
	assert_string_equal(f->e.msg, "policy serving/p20000 is one more than the ceiling of 20000 policies");
	size_t n = 0;
	for (struct stored_binding *b = NULL; (b = policy_store_next(f->store, b));)
		n++;
	assert_int_equal(n, POLICY_STORE_MAX);
	for (int i = 0; i < POLICY_STORE_MAX; i++) {
		char name[16];
		snprintf(name, sizeof name, "p%d", i);
		policy_store_remove(f->store, POLICY_FROM_FILE, "serving", name);
	}
	assert_null(policy_store_next(f->store, NULL));
}

// ---- several bindings of one policy ----

// Puts policy "fleet" with a binding for each letter, the sorted names of Deployments.
static void put_fleet(struct fixture *f, const char *letters)
{
	struct policy_ref *b = body("fleet", "none", 4);
	const size_t n = strlen(letters);
	struct scale_target *targets = arena_calloc(&b->arena, n + 1, sizeof *targets);
	struct binding *bindings = arena_calloc(&b->arena, n + 1, sizeof *bindings);
	for (size_t i = 0; i < n; i++) {
		targets[i] =
		        (struct scale_target){"apps/v1", "Deployment", arena_printf(&b->arena, "%c", letters[i]), NULL};
		bindings[i] = (struct binding){.policy = &b->policy,
		                               .target = &targets[i],
		                               .key = arena_printf(&b->arena, "Deployment/%c", letters[i])};
	}
	b->bindings = bindings;
	b->n_bindings = n;
	assert_int_equal(policy_store_put(f->store, POLICY_FROM_FILE, b, NULL, &f->e), 0);
}

static struct stored_binding *binding_at(struct fixture *f, size_t i)
{
	return find(f, "fleet")->bindings[i];
}

static void version_keeps_the_bindings_that_it_has_too(void **state)
{
	struct fixture *f = *state;
	int user;
	put_fleet(f, "ab");
	assert_news(f, "+fleet +fleet");
	struct stored_binding *b = binding_at(f, 1);
	b->user = &user;
	put_fleet(f, "bc");
	assert_news(f, "-fleet +fleet +fleet");
	assert_ptr_equal(policy_store_next(f->store, NULL), b);
	assert_ptr_equal(policy_store_next(f->store, b), binding_at(f, 1));
	assert_null(policy_store_next(f->store, binding_at(f, 1)));
	assert_ptr_equal(b->user, &user);
	assert_ptr_equal(b->binding, &find(f, "fleet")->body->bindings[0]); // of the new version
	assert_string_equal(binding_at(f, 1)->binding->key, "Deployment/c");
	put_fleet(f, "");
	assert_news(f, "-fleet -fleet");
	assert_null(policy_store_next(f->store, NULL));
	put_file(f, "fleet", "a", 4);
	assert_null(binding_at(f, 0)->binding->key);
	policy_store_remove(f->store, POLICY_FROM_FILE, "serving", "fleet");
	assert_news(f, "+fleet -fleet");
}

static void each_binding_claims_a_target_of_its_own(void **state)
{
	struct fixture *f = *state;
	put_file(f, "b", "b", 4);
	put_fleet(f, "abc");
	assert_ptr_equal(stored_binding_winner(binding_at(f, 0)), binding_at(f, 0));
	assert_ptr_equal(stored_binding_winner(binding_at(f, 1)), find(f, "b")->bindings[0]);
	assert_ptr_equal(stored_binding_winner(binding_at(f, 2)), binding_at(f, 2));
	f->news[0] = '\0';
	policy_store_remove(f->store, POLICY_FROM_FILE, "serving", "b");
	assert_news(f, "+fleet -b"); // the binding that waited
	assert_ptr_equal(stored_binding_winner(binding_at(f, 1)), binding_at(f, 1));
}

// Puts policy `name` with a variant for each letter, the names of Deployments.
static void put_variants(struct fixture *f, const char *name, const char *letters)
{
	struct policy_ref *b = body(name, "none", 4);
	const size_t n = strlen(letters);
	struct scale_variant *items = arena_calloc(&b->arena, n, sizeof *items);
	for (size_t i = 0; i < n; i++)
		items[i] = (struct scale_variant){
		        .target = {"apps/v1", "Deployment", arena_printf(&b->arena, "%c", letters[i])}};
	b->variants = (struct scale_variants){.items = items, .n = n};
	b->target = items[0].target;
	b->binding.variants = &b->variants;
	assert_int_equal(policy_store_put(f->store, POLICY_FROM_FILE, b, NULL, &f->e), 0);
}

static struct stored_binding *only(struct fixture *f, const char *name)
{
	assert_int_equal(find(f, name)->n_bindings, 1);
	return find(f, name)->bindings[0];
}

static void binding_with_variants_needs_all_of_its_targets(void **state)
{
	struct fixture *f = *state;
	put_variants(f, "a", "xy");
	put_file(f, "b", "y", 4);
	put_variants(f, "c", "zy");
	assert_ptr_equal(stored_binding_winner(only(f, "a")), only(f, "a"));
	assert_null(stored_binding_awaited(only(f, "a")));
	assert_ptr_equal(stored_binding_winner(only(f, "b")), only(f, "a"));
	assert_ptr_equal(stored_binding_winner(only(f, "c")), only(f, "a"));
	assert_string_equal(stored_binding_awaited(only(f, "c"))->name, "y");
	f->news[0] = '\0';
	put_variants(f, "a", "xz"); // releases y, takes z
	assert_ptr_equal(stored_binding_winner(only(f, "b")), only(f, "b"));
	assert_ptr_equal(stored_binding_winner(only(f, "c")), only(f, "a"));
	assert_string_equal(stored_binding_awaited(only(f, "c"))->name, "z");
	assert_true(strstr(f->news, "+b") && strstr(f->news, "+c"));
	policy_store_remove(f->store, POLICY_FROM_FILE, "serving", "a");
	assert_ptr_equal(stored_binding_winner(only(f, "c")), only(f, "b"));
	policy_store_remove(f->store, POLICY_FROM_FILE, "serving", "b");
	assert_ptr_equal(stored_binding_winner(only(f, "c")), only(f, "c"));
}

int main(void)
{
#define T(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)
	const struct CMUnitTest tests[] = {
	        T(new_version_replaces_the_one_before),
	        T(repeated_version_changes_nothing),
	        T(bad_version_leaves_the_last_good_one_in_force),
	        T(policy_that_was_never_valid_is_known_and_not_in_force),
	        T(object_goes_before_a_file_of_its_name),
	        T(bad_object_never_replaces_a_good_file),
	        T(object_recreated_under_its_name_is_a_new_policy),
	        T(of_two_objects_for_one_target_the_older_has_it),
	        T(equally_old_policies_are_ordered_by_name_with_objects_before_files),
	        T(policy_that_turns_to_another_target_leaves_the_first),
	        T(target_of_another_kind_with_the_same_name_is_another_target),
	        T(objects_of_one_namespace_leave_room_for_another),
	        T(as_many_as_the_ceiling_fit_and_no_more),
	        T(version_keeps_the_bindings_that_it_has_too),
	        T(each_binding_claims_a_target_of_its_own),
	        T(binding_with_variants_needs_all_of_its_targets),
	};
	return cmocka_run_group_tests_name("policy_store", tests, NULL, NULL);
}
