#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""A kubelet device plugin that offers devices without hardware.

The messages of the v1beta1 device plugin API are few and flat, so they are encoded here by hand: no protobuf compiler.
A container that is given devices finds their ids in NVIDIA_VISIBLE_DEVICES, as with the real plugin.
"""
import argparse
import os
import threading
from concurrent import futures

import grpc

SOCKETS = "/var/lib/kubelet/device-plugins/"
SERVICE = "v1beta1.DevicePlugin"


def varint(n):
    out = b""
    while n > 0x7F:
        out += bytes([n & 0x7F | 0x80])
        n >>= 7
    return out + bytes([n])


def field(number, data):
    """A length-delimited protobuf field: string, bytes or message."""
    data = data.encode() if isinstance(data, str) else data
    return varint(number << 3 | 2) + varint(len(data)) + data


def fields(message):
    """Yields (number, bytes) of the length-delimited fields of a message that has no others."""
    def read(at):
        value = shift = 0
        while True:
            byte = message[at]
            at += 1
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value, at

    at = 0
    while at < len(message):
        key, at = read(at)
        size, at = read(at)
        if key & 7 != 2 or at + size > len(message):
            raise ValueError("not a message of length-delimited fields")
        yield key >> 3, message[at:at + size]
        at += size


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--devices", type=int, default=8)
    parser.add_argument("--resource", default="nvidia.com/gpu")
    args = parser.parse_args()
    ids = ["GPU-%08d-0000-0000-0000-000000000000" % i for i in range(args.devices)]
    over = threading.Event()

    def get_options(_request, _context):
        return b""

    def list_and_watch(_request, _context):
        yield b"".join(field(1, field(1, i) + field(2, "Healthy")) for i in ids)
        over.wait()

    def allocate(request, _context):
        # AllocateRequest{1: container{1: device id}} -> AllocateResponse{1: container{1: env{1: name, 2: value}}}
        response = b""
        for _, container in fields(request):
            given = ",".join(device.decode() for _, device in fields(container))
            response += field(1, field(1, field(1, "NVIDIA_VISIBLE_DEVICES") + field(2, given)))
        return response

    def pre_start(_request, _context):
        return b""

    raw = {"request_deserializer": bytes, "response_serializer": bytes}
    server = grpc.server(futures.ThreadPoolExecutor(8))
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(SERVICE, {
        "GetDevicePluginOptions": grpc.unary_unary_rpc_method_handler(get_options, **raw),
        "ListAndWatch": grpc.unary_stream_rpc_method_handler(list_and_watch, **raw),
        "Allocate": grpc.unary_unary_rpc_method_handler(allocate, **raw),
        "PreStartContainer": grpc.unary_unary_rpc_method_handler(pre_start, **raw),
    }),))
    name = "gpuscale-test.sock"
    if os.path.exists(SOCKETS + name):
        os.unlink(SOCKETS + name)
    server.add_insecure_port("unix:" + SOCKETS + name)
    server.start()
    with grpc.insecure_channel("unix:" + SOCKETS + "kubelet.sock") as channel:
        register = channel.unary_unary("/v1beta1.Registration/Register", request_serializer=bytes, response_deserializer=bytes)
        register(field(1, "v1beta1") + field(2, name) + field(3, args.resource), timeout=60, wait_for_ready=True)
    print("registered %d devices as %s" % (len(ids), args.resource), flush=True)
    try:
        server.wait_for_termination()
    finally:
        over.set()


if __name__ == "__main__":
    main()
