// SPDX-License-Identifier: Apache-2.0
// Goal of this test: a ScaledObject is the policy into which `convert` converts it, or is refused with the cause; its
// status keeps the memory of the engine.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/json/json_span.h"
#include "controller/source/policy_object.h"
#include "controller/status/status_doc.h"
#include "policies/convert/convert.h"
#include "policies/load/policy_ref.h"

#define TEXT_MAX 65536

static const char *source_of(void *arg, const struct convert_server *server, const char **ret_why)
{
	if (server->authentication && strcmp(server->authentication, "token") == 0 &&
	    strcmp(server->modes, "bearer") == 0)
		return "token-1";
	if (server->authentication)
		*ret_why = "TriggerAuthentication is not read yet";
	return !server->authentication && strcmp(server->url, "http://prometheus:9090") == 0 ? "main" : NULL;
}

struct decoded {
	struct policy_ref *body;
	struct buf faults;
	int rc;
};

#define QUERY "{'type':'prometheus','metadata':{'serverAddress':'http://prometheus:9090','query':'q','threshold':'5'"

// `spec` and `annotations` as JSON with ' for ".
static void decode(struct decoded *d, const char *annotations, const char *spec)
{
	static const struct convert_live live = {.source_of = source_of};
	struct buf text;
	buf_init(&text, TEXT_MAX);
	buf_init(&d->faults, TEXT_MAX);
	buf_printf(&text,
	           "{'apiVersion':'keda.sh/v1alpha1','kind':'ScaledObject','metadata':{'name':'llama',"
	           "'namespace':'serving','uid':'u','annotations':{%s}},'spec':{'scaleTargetRef':{'name':'llama'},%s}}",
	           annotations, spec);
	for (size_t i = 0; i < text.len; i++)
		if (text.data[i] == '\'')
			text.data[i] = '"';
	d->body = policy_ref_new();
	assert_non_null(d->body);
	d->rc = scaled_object_decode(text.data, text.len, &live, d->body, &d->faults);
	buf_done(&text); // nothing may point into it
	assert_int_equal(d->rc<0, d->faults.len> 0);
}

static void done(struct decoded *d)
{
	policy_ref_release(d->body);
	buf_done(&d->faults);
}

static void supported_object_is_a_policy(void **state)
{
	struct decoded d;
	(void)state;
	decode(&d, "", "'maxReplicaCount':9,'minReplicaCount':2,'pollingInterval':30,'triggers':[" QUERY "}}]");
	assert_string_equal(buf_str(&d.faults), "");
	const struct policy *p = &d.body->policy;
	assert_string_equal(p->name, "llama");
	assert_string_equal(p->namespace_name, "serving");
	assert_int_equal(p->min_replicas, 2);
	assert_int_equal(p->max_replicas, 9);
	assert_int_equal(p->interval_ms, 15000); // that of KEDA's HPA
	assert_int_equal(p->n_signals, 1);
	assert_string_equal(p->signals[0].source, "main");
	assert_string_equal(d.body->origin->target_kind, "apps/v1.Deployment");
	assert_string_equal(d.body->origin->trigger_types, "prometheus");
	assert_string_equal(d.body->origin->metric_names[0], "s0-prometheus");
	assert_false(d.body->origin->is_paused);
	done(&d);
}

static void names_of_metrics_have_the_index_of_the_trigger(void **state)
{
	struct decoded d;
	(void)state;
	decode(&d, "",
	       "'triggers':[{'type':'cron','metadata':{'timezone':'UTC','start':'0 8 * * *','end':'0 9 * * *',"
	       "'desiredReplicas':'2'}}," QUERY "}}]");
	assert_string_equal(buf_str(&d.faults), "");
	assert_string_equal(d.body->origin->trigger_types, "cron,prometheus");
	assert_string_equal(d.body->origin->metric_names[0], "s1-prometheus");
	done(&d);
}

static void pause_at_a_number_replaces_what_decides(void **state)
{
	struct decoded d;
	(void)state;
	decode(&d, "'autoscaling.keda.sh/paused-replicas':'4'",
	       "'minReplicaCount':0,'fallback':{'failureThreshold':1,'replicas':7},'triggers':[" QUERY "}}]");
	assert_string_equal(buf_str(&d.faults), "");
	assert_int_equal(d.body->policy.min_replicas, 4);
	assert_int_equal(d.body->policy.max_replicas, 4);
	assert_false(d.body->policy.idle.set);
	assert_true(d.body->origin->is_paused);
	done(&d);
	decode(&d, "'autoscaling.keda.sh/paused-replicas':'0'", "'triggers':[" QUERY "}}]");
	assert_string_equal(buf_str(&d.faults), "");
	assert_true(d.body->policy.idle.set);
	assert_int_equal(d.body->policy.idle.replicas, 0);
	assert_int_equal(d.body->policy.idle.after_ms, 0);
	done(&d);
}

static void refused_object_names_the_cause(void **state)
{
	static const char *const rows[][3] = {
	        {"", "'triggers':[{'type':'kafka','metadata':{}}]", "kafka"},
	        {"", "'triggers':[]", "signals"},
	        {"", "'triggers':7", "signals"},
	        {"", "'triggers':[{'type':'prometheus','metadata':{'serverAddress':'http://10.0.0.1','query':'q'}}]",
	         "not supported: serverAddress \"http://10.0.0.1\""},
	        {"", "'triggers':[{'type':'prometheus','metadata':{'query':'q','threshold':'1'}}]",
	         "serverAddress \"\""},
	        {"", "'triggers':[" QUERY "},'authenticationRef':{'name':'a'}}]", "is not read yet"},
	        {"", "'triggers':[" QUERY "},'authenticationRef':{'name':'a','kind':'ClusterTriggerAuthentication'}}]",
	         "not supported: authentication by a ClusterTriggerAuthentication"},
	        {"", "'triggers':[" QUERY ",'authModes':'basic'}}]",
	         "not supported: authentication or access by authModes"},
	        {"", "'triggers':[" QUERY ",'customHeaders':'a=b'}}]", "customHeaders"},
	        {"", "'triggers':[" QUERY ",'unsafeSsl':'true'}}]", "unsafeSsl"},
	        {"", "'triggers':[" QUERY ",'activationThreshold':'many'}}]", "activationThreshold"},
	        {"", "'maxReplicaCount':1,'minReplicaCount':5,'triggers':[" QUERY "}}]", "as a policy: "},
	        {"", "'advanced':{'scalingModifiers':{'formula':'absent + 1','target':'1'}},'triggers':[" QUERY "}}]",
	         "absent"},
	        {"'autoscaling.keda.sh/paused-replicas':'x'", "'triggers':[" QUERY "}}]", "paused-replicas"},
	        {"",
	         "'triggers':[{'type':'cron','metadata':{'timezone':'Mars','start':'0 8 * * *','end':'0 9 * * *',"
	         "'desiredReplicas':'2'}}]",
	         "Mars"},
	};
	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		struct decoded d;
		decode(&d, rows[i][0], rows[i][1]);
		if (d.rc == 0 || !strstr(buf_str(&d.faults), rows[i][2]))
			fail_msg("%s: %s", rows[i][1], buf_str(&d.faults));
		done(&d);
	}
}

static void status_keeps_the_state_of_the_engine(void **state)
{
	static const char memory[] = "{\"status\":{\"message\":\"a \\\"quote\\\"\",\"currentReplicas\":3}}";
	struct buf status, object, read;
	(void)state;
	buf_init(&status, TEXT_MAX);
	buf_init(&object, TEXT_MAX);
	buf_init(&read, TEXT_MAX);
	scaled_object_doc_write(&status, &(struct scaled_object_doc){.state = memory});
	buf_printf(&object, "{\"metadata\":{\"generation\":7},%s", buf_str(&status) + 1);
	assert_true(scaled_object_doc_read(&read, buf_str(&object), object.len));
	assert_string_equal(
	        buf_str(&read),
	        "{\"metadata\":{\"generation\":7},\"status\":{\"message\":\"a \\\"quote\\\"\",\"currentReplicas\":3}}");
	buf_reset(&read);
	assert_false(scaled_object_doc_read(&read, "{\"status\":{\"conditions\":[{\"type\":\"Ready\"}]}}", 43));
	assert_string_equal(buf_str(&read), "{\"metadata\":{\"generation\":0},\"status\":{}}");
	buf_done(&status);
	buf_done(&object);
	buf_done(&read);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(supported_object_is_a_policy),
	        cmocka_unit_test(names_of_metrics_have_the_index_of_the_trigger),
	        cmocka_unit_test(pause_at_a_number_replaces_what_decides),
	        cmocka_unit_test(refused_object_names_the_cause),
	        cmocka_unit_test(status_keeps_the_state_of_the_engine),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
