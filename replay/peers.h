// SPDX-License-Identifier: Apache-2.0
// Other autoscalers as models of their rules, each over several values of its main setting. They read the simulated
// world, never the future. Sources: HPA: replica_calculator.go and horizontal.go; KEDA: an external metric of type
// AverageValue for the HPA; WPA: replica_calculator.go; Knative: pkg/autoscaler/scaling/autoscaler.go.
#ifndef GPUSCALE_REPLAY_PEERS_H
#define GPUSCALE_REPLAY_PEERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct world;

#define PEER_RECOMMENDATIONS 20 // recommendations in five minutes, one each 15 s

enum peer_kind { PEER_HPA, PEER_KEDA, PEER_WPA, PEER_KNATIVE, PEER_FIXED, PEER__COUNT };

// One row of the sweep.
struct peer_setting {
	enum peer_kind kind;
	double value; // HPA, WPA: utilization; KEDA, Knative: demand of one replica
};
extern const struct peer_setting peer_settings[];
extern const size_t peer_n_settings;
extern const char *const peer_names[PEER__COUNT]; // "HPA"
// Writes "HPA utilization 0.5" to `out`.
void peer_setting_label(const struct peer_setting *setting, char *out, size_t size);

struct peer {
	enum peer_kind kind;
	double value;
	int32_t min, max;
	struct {
		int64_t time_ms;
		int32_t replicas;
	} recommendations[PEER_RECOMMENDATIONS]; // HPA, KEDA: of the stabilization window; a ring
	uint64_t n_recommendations;
	double polled;      // KEDA: the last value that it polled
	int64_t scaled_ms;  // WPA: the last scale; < 0: none
	int64_t panic_ms;   // Knative: since when; < 0: no panic
	int32_t panic_most; // Knative: the largest scale of this panic
};

void peer_init(struct peer *p, enum peer_kind kind, double value, int32_t min, int32_t max);
// Returns the time between two decisions.
int64_t peer_interval_ms(const struct peer *p, int64_t step_ms);
// The decide function of a struct candidate (world.h); self is a struct peer. A gap keeps the replicas.
int32_t peer_candidate_decide(void *self, const struct world *w, bool has_data);

#endif
