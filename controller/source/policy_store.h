// SPDX-License-Identifier: Apache-2.0
// The policies in force, by namespace and name, filled one by one by their sources, and the bindings of each. A valid
// version replaces the previous one; an invalid version leaves the last valid one in force and is kept as its error. Of
// several bindings for one target one owns it, and the others wait until it is removed. The cost of a change does not
// depend on the number of policies.
#ifndef GPUSCALE_CONTROLLER_SOURCE_POLICY_STORE_H
#define GPUSCALE_CONTROLLER_SOURCE_POLICY_STORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct err;
struct binding;
struct policy_ref;
struct scale_target;
struct policy_claimant;
struct policy_store;

#define POLICY_STORE_MAX           20000
#define POLICY_STORE_NAMESPACE_MAX 15000 // per namespace, so that one namespace cannot fill the store
#define POLICY_UID_BYTES           64
#define POLICY_ERROR_BYTES_MAX     4096 // limit on the error text of a version; longer texts are cut

// A name may come from several sources: the first with a valid version overrides the others, and of several policies
// for one target, that of the first source owns it.
enum policy_source { POLICY_FROM_OBJECT, POLICY_FROM_FILE, POLICY_FROM_SCALED_OBJECT, POLICY_SOURCE__COUNT };

// The metadata of an object. A policy from a file has none.
struct policy_identity {
	char uid[POLICY_UID_BYTES];
	int64_t generation;
	int64_t created_ms; // since the epoch; 0: unknown
	bool has_status;    // the object has a status
};

struct policy_version {
	bool is_there;
	struct policy_ref *body;          // the last valid one; NULL: none yet
	char *error;                      // faults of the newest one; NULL: none
	struct policy_identity *identity; // of the newest one, valid or not; NULL: from a file
};

// One binding of a policy of the store: what the listener works on. A new version of the policy keeps the bindings
// whose keys it has, too. The listener may change `user` alone.
struct stored_binding {
	struct policy_entry *entry;
	size_t index;                   // in entry->bindings
	const struct binding *binding;  // of entry->body; NULL: the policy has no valid version
	struct policy_claimant *claims; // one per target of the binding; NULL without one
	size_t n_claims;
	void *user; // of the listener
};

// One namespace and name.
struct policy_entry {
	const char *namespace_name, *name;
	struct policy_version versions[POLICY_SOURCE__COUNT];
	struct policy_ref *body;          // in force: from the first source that has one; NULL: none
	enum policy_source source;        // of body; without one, of the first existing version
	struct stored_binding **bindings; // those of body, sorted by key; without a body, one without a key
	size_t n_bindings;
};

struct policy_listener {
	// Called when the body, the error, the generation, or the owner of the target has changed.
	void (*on_change)(void *arg, struct stored_binding *b);
	// Called before the binding and the reference on its version are freed. deleted: the object of the policy was
	// deleted, and not replaced by an object of the same name.
	void (*on_remove)(void *arg, struct stored_binding *b, bool deleted);
	void *arg;
};

// The listener must not change the store from its callbacks.
struct policy_store *policy_store_new(const struct policy_listener *listener);
// Calls no callback. NULL is fine.
void policy_store_free(struct policy_store *s);

// Stores a valid version; its name is the policy's. Takes over the reference on body, also on failure. If the store
// already holds this body, only the identity is replaced. identity is NULL for a policy from a file. An identity with a
// new uid is a new policy of that name: the previous one is removed. Returns 0, or -1 and *e: ERR_LIMIT above
// POLICY_STORE_MAX or POLICY_STORE_NAMESPACE_MAX.
int policy_store_put(struct policy_store *s, enum policy_source source, struct policy_ref *body,
                     const struct policy_identity *identity, struct err *e);
// Stores why the latest version cannot be used.
int policy_store_put_bad(struct policy_store *s, enum policy_source source, const char *namespace_name,
                         const char *name, const struct policy_identity *identity, const char *error, struct err *e);
// Removes the version of this source. Unknown names are fine.
void policy_store_remove(struct policy_store *s, enum policy_source source, const char *namespace_name,
                         const char *name);

// Returns NULL when there is no such entry.
struct policy_entry *policy_store_find(const struct policy_store *s, const char *namespace_name, const char *name);
// Returns the binding after `b` (NULL: the first): those of a policy follow each other by key, policies are in no
// particular order. NULL at the end.
struct stored_binding *policy_store_next(const struct policy_store *s, const struct stored_binding *b);
// Returns the owner of the binding's targets: the binding itself, or the first one that it waits for. NULL without a
// valid version.
// The first source takes precedence, then the older object, then the first name.
struct stored_binding *stored_binding_winner(const struct stored_binding *b);
// Returns the target that the binding waits for; NULL: none.
const struct scale_target *stored_binding_awaited(const struct stored_binding *b);
// Returns the owner of the first target of `binding`, which need not be in the store; NULL: none.
struct stored_binding *policy_store_holder(const struct policy_store *s, const struct binding *binding);
// Returns the faults of the newest version of the entry's source; "": none.
const char *policy_entry_error(const struct policy_entry *entry);
// Returns the identity of the object that has the status of the entry; NULL: the policy is from a file. The object of a
// version without a valid body has one beside a file.
const struct policy_identity *policy_entry_identity(const struct policy_entry *entry);

struct policy_counts {
	size_t entries, in_force; // in_force: have a body, whether or not they own their target
	size_t invalid;           // versions with an error
};
const struct policy_counts *policy_store_counts(const struct policy_store *s);

#endif
