#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""replicas.py API_FOLDER NAMESPACE: in place of the Deployment controller: status.replicas of each Deployment follows
spec.replicas at once, and those with the label has-pods=true have as many pods, which are ready."""
import sys
import time

from api import Api


class Follower:
    def __init__(self, folder, namespace):
        self.api = Api(folder)
        self.deployments = '/apis/apps/v1/namespaces/%s/deployments' % namespace
        self.pods = '/api/v1/namespaces/%s/pods' % namespace
        self.n_pods = {}

    def follow(self, deployment):
        meta, want = deployment['metadata'], deployment['spec']['replicas']
        name = meta['name']
        if meta.get('labels', {}).get('has-pods') == 'true':
            self.set_pods(name, want)
        if deployment.get('status', {}).get('replicas', 0) != want:
            counts = dict.fromkeys(('replicas', 'readyReplicas', 'availableReplicas', 'updatedReplicas'), want)
            counts['observedGeneration'] = meta['generation']
            self.api.merge('%s/%s/status' % (self.deployments, name), {'status': counts})

    def set_pods(self, name, want):
        have = self.n_pods.get(name, 0)
        for i in range(have, want):
            pod = '%s-%d' % (name, i)
            self.api.request('POST', self.pods, {
                'apiVersion': 'v1', 'kind': 'Pod', 'metadata': {'name': pod, 'labels': {'app': name}},
                'spec': {'nodeName': 'node', 'containers': [{'name': 'main', 'image': 'none'}]}})
            now = time.strftime('%Y-%m-%dT%H:%M:%SZ', time.gmtime())
            ready = {'type': 'Ready', 'status': 'True', 'lastTransitionTime': now}
            self.api.merge('%s/%s/status' % (self.pods, pod), {
                'status': {'phase': 'Running', 'startTime': now, 'conditions': [ready]}})
        for i in range(want, have):
            self.api.request('DELETE', '%s/%s-%d?gracePeriodSeconds=0' % (self.pods, name, i))
        self.n_pods[name] = want

    def run(self):
        while True:
            page = self.api.get(self.deployments)
            for item in page['items']:
                self.follow(item)
            since = 'watch=true&timeoutSeconds=600&resourceVersion=' + page['metadata']['resourceVersion']
            try:
                for event in self.api.watch(self.deployments + '?' + since):
                    if event['type'] == 'ERROR':
                        break
                    if event['type'] != 'DELETED':
                        self.follow(event['object'])
            except OSError:
                time.sleep(1)


if __name__ == '__main__':
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    Follower(sys.argv[1], sys.argv[2]).run()
