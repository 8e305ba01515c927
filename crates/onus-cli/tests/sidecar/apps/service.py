"""A service in Python that knows nothing of its sidecar.

It prints the port that it listens on, reads from its input where calls go out, and prints a line for
each request that it handles. By the environment:

    SERVE     http or grpc: what it serves
    CALL      http or grpc: how it calls CALLEE; without CALLEE it fails by itself
    OTEL      1: with the libraries of OpenTelemetry, which hand on what tracing hands on
    HAND_ON   names of headers that it copies itself
    TRIES     how often it tries a call: over http in a loop of its own, over grpc its library does
    TOGETHER  how many requests it waits for before any of them makes its call
"""

import concurrent.futures
import http.server
import json
import os
import sys
import threading

import grpc
import requests

CALLEE = os.environ.get("CALLEE")
HAND_ON = os.environ.get("HAND_ON", "").split()
TRIES = int(os.environ.get("TRIES", "1"))
TOGETHER = threading.Barrier(int(os.environ.get("TOGETHER", "1")))
METHOD = "/shop.Any/Call"
SECONDS_MAX = 30

calls_go = {}


class Bare:
    """No tracing."""

    def serving(self, _headers):
        return self

    def __enter__(self):
        return self

    def __exit__(self, *_):
        return False


class Traced:
    """A span for each request, a child of the caller's."""

    def __init__(self):
        from opentelemetry import propagate, trace
        from opentelemetry.instrumentation.grpc import (
            GrpcInstrumentorClient,
            GrpcInstrumentorServer,
        )
        from opentelemetry.instrumentation.requests import RequestsInstrumentor
        from opentelemetry.sdk.trace import TracerProvider

        trace.set_tracer_provider(TracerProvider())
        RequestsInstrumentor().instrument()
        GrpcInstrumentorClient().instrument()
        GrpcInstrumentorServer().instrument()
        self.extract = propagate.extract
        self.tracer = trace.get_tracer("service")

    def serving(self, headers):
        context = self.extract({name.lower(): value for name, value in headers.items()})
        return self.tracer.start_as_current_span("serve", context=context)


tracing = Traced() if os.environ.get("OTEL") == "1" else Bare()


def call(headers):
    """Calls the callee for a request with these headers; whether it answered."""
    print("handles", flush=True)
    if CALLEE is None:
        return False
    TOGETHER.wait(SECONDS_MAX)
    handed_on = {name: headers[name] for name in HAND_ON if name in headers}
    if os.environ.get("CALL") == "grpc":
        try:
            calls_go["grpc"](b"17 EUR", metadata=tuple(handed_on.items()), timeout=SECONDS_MAX)
            return True
        except grpc.RpcError:
            return False
    for _ in range(TRIES):
        answer = requests.get(
            f"http://{calls_go['address']}/rate",
            headers={"host": CALLEE, **handed_on},
            timeout=SECONDS_MAX,
        )
        if answer.status_code < 500:
            return True
    return False


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        headers = {name.lower(): value for name, value in self.headers.items()}
        with tracing.serving(headers):
            status = 200 if call(headers) else 503
        self.send_response(status)
        self.send_header("content-length", "0")
        self.end_headers()

    def log_message(self, *_):
        pass


class Server(http.server.ThreadingHTTPServer):
    request_queue_size = 128
    daemon_threads = True


def serve_http():
    server = Server(("127.0.0.1", 0), Handler)
    return server.server_address[1], server.serve_forever


def serve_grpc():
    def handle(_message, context):
        headers = dict(context.invocation_metadata())
        if not call(headers):
            context.abort(grpc.StatusCode.UNAVAILABLE, "its callee failed")
        return b"ok"

    server = grpc.server(concurrent.futures.ThreadPoolExecutor(16))
    handler = grpc.method_handlers_generic_handler(
        "shop.Any", {"Call": grpc.unary_unary_rpc_method_handler(handle)}
    )
    server.add_generic_rpc_handlers((handler,))
    port = server.add_insecure_port("127.0.0.1:0")

    def run():
        server.start()
        server.wait_for_termination()

    return port, run


def channel(address):
    options = [("grpc.default_authority", CALLEE), ("grpc.enable_http_proxy", 0)]
    if TRIES > 1:
        policy = {
            "maxAttempts": TRIES,
            "initialBackoff": "0.01s",
            "maxBackoff": "0.02s",
            "backoffMultiplier": 1,
            "retryableStatusCodes": ["UNAVAILABLE"],
        }
        config = {"methodConfig": [{"name": [{}], "retryPolicy": policy}]}
        options += [("grpc.enable_retries", 1), ("grpc.service_config", json.dumps(config))]
    return grpc.insecure_channel(address, options)


if __name__ == "__main__":
    port, run = serve_grpc() if os.environ["SERVE"] == "grpc" else serve_http()
    print(port, flush=True)
    calls_go["address"] = sys.stdin.readline().strip()
    if CALLEE is not None:
        calls_go["grpc"] = channel(calls_go["address"]).unary_unary(METHOD)
    print("ready", flush=True)
    run()
