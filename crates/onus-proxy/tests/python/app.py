"""A service that knows nothing of its sidecar: it hands on the trace headers that it gets.

    app.py CALLEE    answers what its callee answers, called through the proxy in HTTP_PROXY_URL
    app.py           answers 503

It prints the port that it listens on, and then a line for each request.
"""

import http.client
import http.server
import os
import sys

CALLEE = sys.argv[1] if len(sys.argv) > 1 else None
HANDED_ON = ("traceparent", "tracestate")


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        print("request", self.headers.get("tracestate", "-"), flush=True)
        status = self.call() if CALLEE else 503
        body = b"a body\n"
        self.send_response(status)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def call(self):
        host, port = os.environ["OUTBOUND"].split(":")
        connection = http.client.HTTPConnection(host, int(port), timeout=30)
        headers = {name: self.headers[name] for name in HANDED_ON if name in self.headers}
        connection.request("GET", "/", headers={"host": CALLEE, **headers})
        response = connection.getresponse()
        response.read()
        connection.close()
        return response.status if response.status < 400 else 502

    def log_message(self, *_):
        pass


class Server(http.server.ThreadingHTTPServer):
    request_queue_size = 128
    daemon_threads = True


if __name__ == "__main__":
    server = Server(("127.0.0.1", int(os.environ.get("PORT", "0"))), Handler)
    print(server.server_address[1], flush=True)
    server.serve_forever()
