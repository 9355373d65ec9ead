# SPDX-License-Identifier: Apache-2.0
"""api.py: requests of an admin to the API server in a folder of scripts/kube/apiserver, over one connection."""
import http.client
import json
import ssl

TIMEOUT_S = 30


class Api:
    def __init__(self, folder):
        self.context = ssl.create_default_context(cafile=folder + '/ca.crt')
        with open(folder + '/apiserver.port', encoding='ascii') as f:
            self.port = int(f.read())
        self.connection = None

    def connect(self):
        return http.client.HTTPSConnection('127.0.0.1', self.port, context=self.context, timeout=TIMEOUT_S)

    def send(self, connection, method, path, body=None, content_type='application/json'):
        connection.request(method, path, None if body is None else json.dumps(body),
                           {'Authorization': 'Bearer admin-token', 'Content-Type': content_type,
                            'Accept': 'application/json'})
        return connection.getresponse()

    def request(self, method, path, body=None, content_type='application/json'):
        """Returns the status and the decoded body. Sends again, once, over a new connection."""
        for attempt in (1, 2):
            try:
                self.connection = self.connection or self.connect()
                response = self.send(self.connection, method, path, body, content_type)
                text = response.read()
                return response.status, json.loads(text) if text[:1] in (b'{', b'[') else {}
            except (OSError, http.client.HTTPException):
                self.connection.close()
                self.connection = None
                if attempt == 2:
                    raise

    def get(self, path):
        status, body = self.request('GET', path)
        if status != 200:
            raise OSError('GET %s: HTTP %d' % (path, status))
        return body

    def merge(self, path, body):
        return self.request('PATCH', path, body, 'application/merge-patch+json')[0]

    def watch(self, path):
        """Yields the events of a watch until the server ends it."""
        connection = self.connect()
        try:
            response = self.send(connection, 'GET', path)
            while line := response.readline():
                yield json.loads(line)
        finally:
            connection.close()
