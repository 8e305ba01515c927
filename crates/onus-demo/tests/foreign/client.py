"""A gRPC client that knows nothing of Onus, and retries as its service config says.

client.py ADDRESS CALLS SERVICE-CONFIG

Makes the calls one after the other, and prints a line for each: the status, and of the trailing
metadata the pushback and the claim, "-" for none.
"""

import sys

import grpc

METHOD = "/onus.demo.Node/Call"
SECONDS_MAX = 30


def main(address, calls, service_config):
    options = [
        ("grpc.service_config", service_config),
        ("grpc.enable_http_proxy", 0),
    ]
    with grpc.insecure_channel(address, options) as channel:
        # So that no attempt is spent on a connection that is not there yet.
        grpc.channel_ready_future(channel).result(SECONDS_MAX)
        method = channel.unary_unary(METHOD)
        for _ in range(calls):
            try:
                _, call = method.with_call(b"", timeout=SECONDS_MAX)
            except grpc.RpcError as error:
                call = error
            trailers = dict(call.trailing_metadata())
            pushback = trailers.get("grpc-retry-pushback-ms", "-")
            claim = trailers.get("onus-claim", "-")
            print(call.code().name, pushback, claim, flush=True)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), sys.argv[3])
