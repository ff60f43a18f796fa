"""The daemon under test, and helpers for the checks."""

import zmq

from wire import Daemon, Peer, Subscriber


CHECKS = []
ALL_BYTES = bytes(range(256)) * 4
TRACEPARENT = b"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


def check(function):
    CHECKS.append(function)
    return function


class World:
    """The daemon under test, and how to reach it."""

    def __init__(self, binary):
        self.context = zmq.Context()
        self.daemon = Daemon(binary)

    def peer(self, token=None, **rest):
        return Peer(self.context, self.daemon.hoot, token or self.daemon.token, **rest)

    def subscriber(self, *topics):
        return Subscriber(self.context, self.daemon.iopub, self.daemon.token, topics)

    def restart(self):
        if self.daemon.is_running():
            self.daemon.kill()
        self.daemon.start()

    def close(self):
        self.daemon.clean_up()
        self.context.destroy(linger=0)


def assert_error(envelope, category, code, certainty="not_started"):
    assert envelope["kind"] == "error", envelope
    assert (envelope["category"], envelope["code"]) == (category, code), envelope
    assert envelope["certainty"] == certainty, envelope
    assert isinstance(envelope["message"], str) and envelope["message"], envelope
    assert isinstance(envelope["retryable"], bool), envelope


def store(peer, data, **fields):
    return peer.success("cas_store", {"data": data, "mime_type": "text/plain", **fields})
