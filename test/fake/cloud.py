#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A cloud on loopback: the token endpoints of Google, Amazon and Azure in plain HTTP, and a query API over TLS that takes only
their tokens and Amazon's signatures (Signature Version 4, computed here from the specification). Prints both URLs; writes one
line per request to standard error, without a secret. The file CONTROL holds words: "lifetime N", "refuse N" (the next N queries of each cloud),
"broken" (the token endpoints fail)."""
import base64, calendar, hashlib, hmac, json, os, ssl, sys, threading, time, urllib.parse
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

control_path, cert, key, federated = sys.argv[1:5]
issued = {"n": 0, "valid": {}, "refused": {}}
lock = threading.Lock()


def control():
    words = open(control_path).read().split()
    return {a: int(b) for a, b in zip(words, words[1:]) if b.isdigit()}, "broken" in words


def issue(kind):
    values, _ = control()
    with lock:
        issued["n"] += 1
        token = f"{kind}-s3cret-{issued['n']}"
        lifetime = values.get("lifetime", 3600)
        issued["valid"][token] = time.time() + lifetime
    return token, lifetime


def note(text):
    os.write(2, f"{text}\n".encode())  # in one call: threads of two requests must not mix their lines


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *args):
        pass

    def answer(self, status, text, kind="application/json"):
        data = text.encode()
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def body(self):
        return self.rfile.read(int(self.headers.get("Content-Length", 0)))


class Tokens(Handler):
    def do_GET(self):
        if control()[1]:
            note("token broken")
            return self.answer(503, "away")
        if self.path == "/computeMetadata/v1/instance/service-accounts/default/token":
            if self.headers.get("Metadata-Flavor") != "Google":
                note("token google without flavor")
                return self.answer(403, "no flavor")
            token, lifetime = issue("google")
            note("token google")
            return self.answer(200, json.dumps({"access_token": token, "expires_in": lifetime, "token_type": "Bearer"}))
        if self.path == "/v1/credentials":
            if self.headers.get("Authorization") != federated:
                note("token container without authorization")
                return self.answer(401, "no")
            token, lifetime = issue("container")
            note("token container")
            at = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + lifetime))
            return self.answer(200, json.dumps({"AccessKeyId": "AKIACONTAINER", "SecretAccessKey": "secret/of+" + token, "Token": token, "Expiration": at}))
        self.answer(404, "no such page")

    def do_POST(self):
        form = dict(urllib.parse.parse_qsl(self.body().decode()))
        if control()[1]:
            note("token broken")
            return self.answer(503, "away")
        if self.path == "/":
            wanted = {"Action": "AssumeRoleWithWebIdentity", "Version": "2011-06-15", "RoleArn": "arn:aws:iam::1:role/r",
                      "RoleSessionName": "gpuscale", "WebIdentityToken": federated}
            if form != wanted:
                note("token sts refused")
                return self.answer(403, "<ErrorResponse><Error><Code>AccessDenied</Code></Error></ErrorResponse>", "text/xml")
            token, lifetime = issue("sts")
            note("token sts")
            at = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + lifetime))
            return self.answer(200, f"""<AssumeRoleWithWebIdentityResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/">
  <AssumeRoleWithWebIdentityResult>
    <Credentials><SessionToken>{token}</SessionToken><SecretAccessKey>secret/of+{token}</SecretAccessKey>
    <Expiration>{at}</Expiration><AccessKeyId>ASIAROLE</AccessKeyId></Credentials>
  </AssumeRoleWithWebIdentityResult>
</AssumeRoleWithWebIdentityResponse>""", "text/xml")
        if self.path == "/tenant-1/oauth2/v2.0/token":
            wanted = {"client_id": "client-1", "grant_type": "client_credentials", "scope": "https://prometheus.monitor.azure.com/.default",
                      "client_assertion_type": "urn:ietf:params:oauth:client-assertion-type:jwt-bearer", "client_assertion": federated}
            if form != wanted:
                note("token azure refused")
                return self.answer(401, "{}")
            token, lifetime = issue("azure")
            note("token azure")
            return self.answer(200, json.dumps({"token_type": "Bearer", "expires_in": lifetime, "access_token": token}))
        self.answer(404, "no such page")


def sign(secret, date, region, service, text):
    k = ("AWS4" + secret).encode()
    for part in (date, region, service, "aws4_request", text):
        k = hmac.new(k, part.encode(), hashlib.sha256).digest()
    return k.hex()


class Queries(Handler):
    def signature_fault(self, body):
        """Returns why the signature is invalid, "" if it is valid."""
        given = self.headers.get("Authorization", "")
        if not given.startswith("AWS4-HMAC-SHA256 "):
            return "not signed"
        parts = dict(p.strip().split("=", 1) for p in given.split(" ", 1)[1].split(","))
        key_id, date, region, service, end = parts["Credential"].split("/")
        names = parts["SignedHeaders"].split(";")
        at = self.headers.get("X-Amz-Date", "")
        if (region, service, end) != ("eu-west-1", "aps", "aws4_request") or not at.startswith(date):
            return "wrong scope"
        if abs(calendar.timegm(time.strptime(at, "%Y%m%dT%H%M%SZ")) - time.time()) > 300:
            return "wrong time"
        for name in ("host", "x-amz-date", "x-amz-security-token"):
            if name not in names:
                return "not signed: " + name
        token = self.headers.get("X-Amz-Security-Token", "")
        if issued["valid"].get(token, 0) < time.time():
            return "expired"
        path, _, query = self.path.partition("?")
        headers = "".join(f"{n}:{' '.join(self.headers.get(n, '').split())}\n" for n in names)
        request = "\n".join((self.command, urllib.parse.quote(path), query, headers, ";".join(names), hashlib.sha256(body).hexdigest()))
        text = "\n".join(("AWS4-HMAC-SHA256", at, f"{date}/{region}/{service}/aws4_request", hashlib.sha256(request.encode()).hexdigest()))
        return "" if hmac.compare_digest(sign("secret/of+" + token, date, region, service, text), parts["Signature"]) else "wrong signature"

    def serve(self):
        body = self.body()
        kind, _, path = self.path[1:].partition("/")
        values, _ = control()
        with lock:
            refuse = issued["refused"].get(kind, 0) < values.get("refuse", 0)
            issued["refused"][kind] = issued["refused"].get(kind, 0) + refuse
        if kind == "amazon":
            fault = self.signature_fault(body)
        else:
            token = self.headers.get("Authorization", "").removeprefix("Bearer ")
            fault = "" if token.startswith(kind) and issued["valid"].get(token, 0) > time.time() else "no valid token"
        if refuse:
            fault = "refused"
        if fault:
            note(f"query {kind} {fault}")
            return self.answer(403 if kind == "amazon" else 401, "no")
        note(f"query {kind} ok")
        if path.startswith("api/v1/status/buildinfo"):
            return self.answer(200, '{"status":"success","data":{"version":"2.50.0","revision":"x"}}')
        now = time.time()
        self.answer(200, json.dumps({"status": "success", "data": {"resultType": "vector", "result": [{"metric": {}, "value": [now, "4"]}]}}))

    do_GET = do_POST = serve


tokens = ThreadingHTTPServer(("127.0.0.1", 0), Tokens)
queries = ThreadingHTTPServer(("127.0.0.1", 0), Queries)
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain(cert, key)
queries.socket = context.wrap_socket(queries.socket, server_side=True)
threading.Thread(target=tokens.serve_forever, daemon=True).start()
print(f"tokens http://127.0.0.1:{tokens.server_port}")
print(f"queries https://127.0.0.1:{queries.server_port}", flush=True)
queries.serve_forever()
