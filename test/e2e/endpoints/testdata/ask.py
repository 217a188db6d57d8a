"""Asks an endpoint of nova whose keystone is slow.

    ask.py URL

Prints "ready" when the endpoint answers as the kubelet asks, over IPv4 and IPv6, "listens" when it accepts connections although all of
its threads wait for keystone, which this program is, "asked" when further requests wait, and the status of their answers, which come
seconds later.
"""

import http.server
import json
import socket
import ssl
import sys
import threading
import time
import urllib.error
import urllib.parse
import urllib.request

SECONDS = 4
TLS = ssl._create_unverified_context()
asked = threading.Event()


class Keystone(http.server.BaseHTTPRequestHandler):
    """Has no valid token, and takes its time to say so."""

    def do_GET(self):
        version = {"id": "v3.14", "status": "stable", "links": [{"rel": "self", "href": "http://127.0.0.1:5000/v3/"}]}
        if self.path.rstrip("/") in ("", "/v3"):
            self.answer(200, {"version": version} if "v3" in self.path else {"versions": {"values": [version]}})
            return
        asked.set()
        time.sleep(SECONDS)
        self.answer(404, {"error": {"code": 404, "message": "no such token", "title": "Not Found"}})

    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        self.answer(201, {"token": {"methods": ["password"], "expires_at": "2999-01-01T00:00:00.000000Z", "issued_at": "2020-01-01T00:00:00.000000Z",
                                    "user": {"id": "u", "name": "nova", "domain": {"id": "default", "name": "Default"}}, "audit_ids": ["a"],
                                    "project": {"id": "p", "name": "service", "domain": {"id": "default", "name": "Default"}}, "roles": [{"id": "r", "name": "service"}],
                                    "catalog": [{"type": "identity", "id": "i", "name": "keystone", "endpoints": [
                                        {"interface": i, "region": "regionOne", "region_id": "regionOne", "id": i, "url": "http://127.0.0.1:5000/v3"} for i in ("internal", "admin", "public")]}]}},
                    {"X-Subject-Token": "t"})

    def answer(self, status, body, headers={}):
        text = json.dumps(body).encode()
        self.send_response(status)
        for key, value in dict(headers, **{"Content-Type": "application/json", "Content-Length": str(len(text))}).items():
            self.send_header(key, value)
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, *args):
        pass


def status_of(url, headers={}, data=None):
    try:
        with urllib.request.urlopen(urllib.request.Request(url, headers=headers, data=data), context=TLS, timeout=60) as answer:
            answer.read()
            return answer.status
    except urllib.error.HTTPError as error:
        return error.code


def wait_for(url):
    end = time.time() + 120
    while True:
        try:
            return status_of(url)
        except OSError as error:
            if time.time() > end:
                sys.exit("%s does not answer: %s" % (url, error))
            time.sleep(0.5)


def main(url):
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 5000), Keystone)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    statuses = [wait_for(url)]
    if socket.has_ipv6:
        statuses.append(status_of(url.replace("127.0.0.1", "[::1]")))
    if statuses != [200] * len(statuses):
        sys.exit("%s answers %s" % (url, statuses))
    print("ready", flush=True)
    busy = ask(url, range(100, 140))
    time.sleep(1)
    socket.create_connection((urllib.parse.urlsplit(url).hostname, urllib.parse.urlsplit(url).port), timeout=2).close()
    print("listens", flush=True)
    if busy() != [401] * 40:
        sys.exit("%s answers %s" % (url, busy()))
    asked.clear()
    answers = ask(url, range(4))
    time.sleep(1)
    print("asked", flush=True)
    print("answered", answers(), flush=True)


def ask(url, tokens):
    """Sends requests until keystone is asked, and returns what waits for their answers."""
    answers = []
    # More than an endpoint would answer one after the other, and a large one.
    body = b"x" * 100000
    requests = [threading.Thread(target=lambda n=n: answers.append(status_of("%sv2.1/servers" % url, {"X-Auth-Token": "t%d" % n}, body if n == 0 else None))) for n in tokens]
    for request in requests:
        request.start()
    if not asked.wait(60):
        sys.exit("keystone is not asked: %s" % answers)

    def wait():
        for request in requests:
            request.join()
        return answers
    return wait


main(sys.argv[1])
