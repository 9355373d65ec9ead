// SPDX-License-Identifier: Apache-2.0
// The policies in force, by namespace and name, fed one by one by their sources: a good version replaces the one
// before, a bad one leaves the last good one in force and is kept as its error. Of several policies for one target one
// has it, the others wait until it leaves. A change costs the same however many policies there are.
#ifndef GPUSCALE_CONTROLLER_POLICY_STORE_H
#define GPUSCALE_CONTROLLER_POLICY_STORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct err;
struct policy;
struct policy_body;
struct policy_claim; // a target, and who wants it
struct policy_store;

#define POLICY_STORE_MAX       20000
#define POLICY_UID_BYTES       64
#define POLICY_VERSION_BYTES   64
#define POLICY_ERROR_BYTES_MAX 4096 // of what is wrong with a version; longer texts are cut

// One name may come from both: an object with a good version goes before a file.
enum policy_source { POLICY_FROM_OBJECT, POLICY_FROM_FILE, POLICY_SOURCE__COUNT };

// What the API server says about an object besides the policy. A policy from a file has none.
struct policy_identity {
	char uid[POLICY_UID_BYTES];
	char resource_version[POLICY_VERSION_BYTES];
	int64_t generation;
	int64_t created_ms; // since the epoch; 0 = not known
	bool has_status;    // it said something in its status already
};

struct policy_version {
	bool is_there;
	uint32_t round;                   // of policy_store_begin() when it was last seen
	struct policy_body *body;         // the last good one; NULL: there was none yet
	char *error;                      // what is wrong with the newest one; NULL: nothing
	struct policy_identity *identity; // of the newest one, good or bad; NULL: from a file
};

// One namespace and name. For reading, but for `user`.
struct policy_entry {
	char *namespace_name, *name;
	struct policy_version versions[POLICY_SOURCE__COUNT];
	struct policy_body *body;   // in force: of the first source that has one; NULL: none
	enum policy_source source;  // of body; without one, of the first version that is there
	struct policy_claim *claim; // on body's target; NULL without body
	struct policy_entry *next_claimant, *previous_claimant;
	void *user; // of the listener
};

struct policy_listener {
	// Something about the entry is new: its body, its error, its generation, or who has its target.
	void (*on_change)(void *arg, struct policy_entry *entry);
	// The entry goes when this returns, and its reference on the body with it. deleted: its object was deleted, and
	// not replaced by another of that name.
	void (*on_remove)(void *arg, struct policy_entry *entry, bool deleted);
	void *arg;
};

// NULL when memory ends. The listener must not change the store from its callbacks.
struct policy_store *policy_store_new(const struct policy_listener *listener);
// Nobody is told. NULL is fine.
void policy_store_free(struct policy_store *s);

// A good version; its name is that of the policy. Takes the reference on body over, also when it fails. The body that
// is there already: only the identity is new. identity NULL: from a file. An identity with another uid is another
// policy of that name: the one before is removed. ERR_LIMIT beyond POLICY_STORE_MAX, ERR_INTERNAL.
int policy_store_put(struct policy_store *s, enum policy_source source, struct policy_body *body,
                     const struct policy_identity *identity, struct err *e);
// A version that cannot be used, and why.
int policy_store_put_bad(struct policy_store *s, enum policy_source source, const char *namespace_name,
                         const char *name, const struct policy_identity *identity, const char *error, struct err *e);
// It is gone. Unknown names are fine.
void policy_store_remove(struct policy_store *s, enum policy_source source, const char *namespace_name,
                         const char *name);
// Between the two every version that is there is put again; those that are not are removed at the end.
void policy_store_begin(struct policy_store *s, enum policy_source source);
void policy_store_end(struct policy_store *s, enum policy_source source);

// NULL: there is none.
struct policy_entry *policy_store_find(const struct policy_store *s, const char *namespace_name, const char *name);
// The one after `entry`, NULL: the first; in no particular order. NULL at the end.
struct policy_entry *policy_store_next(const struct policy_store *s, const struct policy_entry *entry);
// Who has the target that the entry's policy is for: the entry itself, or the one it waits for. NULL without body.
// Objects go before files; of two objects the older has it, of two equally old ones the first by name.
struct policy_entry *policy_entry_winner(const struct policy_entry *entry);
// Who has the target of this policy, which may be gone from the store; NULL: nobody.
struct policy_entry *policy_store_holder(const struct policy_store *s, const struct policy *policy);
// What is wrong with the newest version of the entry's source; "" when nothing is.
const char *policy_entry_error(const struct policy_entry *entry);

struct policy_counts {
	size_t entries, in_force; // in_force: have a body, whether or not another one has their target
	size_t invalid;           // versions with an error
};
void policy_store_get_counts(const struct policy_store *s, struct policy_counts *ret_counts);

#endif
