"""The daemon's memory: what agents, callers and peers make it keep."""

import socket
import threading
import time

from world import SHOWN, eventually, quick

# MiB that the daemon may have at any moment.
MEMORY = 300


class Watch:
    """Records the daemon's peak memory."""

    def __init__(self, target):
        self.target, self.most, self.is_over = target, target.resident(), False
        self.thread = threading.Thread(target=self.look, daemon=True)

    def look(self):
        while not self.is_over:
            self.most = max(self.most, self.target.resident())
            time.sleep(0.02)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.is_over = True
        self.thread.join()


@quick
def what_agents_say_does_not_fill_the_memory(world):
    """Three agents, each with 110 texts of almost a MiB."""
    with world.another() as target, Watch(target) as watch:
        sessions = [target.agent("flood 110 1000000", create_workspace=True) for _ in range(3)]

        def are_done():
            return all(
                target.done("session_get", session_id=it.id)["status"] not in ("starting", "running") for it in sessions
            )

        eventually(are_done, "the agents have said it all", 90)
        assert watch.most < MEMORY, f"{watch.most} MiB"
        page = target.done("session_events", session_id=sessions[0].id, since_index=-1, max_events=1)
        assert page["last_index"] >= 0, page
        for session in sessions:
            session.end()
        print(f"   {watch.most} MiB at most", flush=True)


@quick
def an_ended_session_keeps_no_memory(world):
    """Five sessions one after the other: the memory of each is released when it ends."""
    with world.another() as target, Watch(target) as watch:
        for _ in range(5):
            session = target.agent("flood 65 1000000", create_workspace=True)

            def is_done(session=session):
                return target.done("session_get", session_id=session.id)["status"] not in ("starting", "running")

            eventually(is_done, "the agent has said it all", 60)
            assert session.end().status == 200
        assert watch.most < MEMORY, f"{watch.most} MiB"


@quick
def endless_output_and_endless_lines_are_bounded(world):
    """An agent whose lines never end, and an event stream that no client reads."""
    config = SHOWN + '[sessions.agents.endless]\ncommand = ["/bin/sh", "-c", "tr \'\\\\\\\\0\' x < /dev/zero"]\n'
    with world.another(config=config) as target, Watch(target) as watch:
        session = target.agent("hello", agent="endless", create_workspace=True)
        follower = socket.create_connection(("127.0.0.1", target.port))
        follower.sendall(
            f"GET /v1/sessions/{session.id}/events HTTP/1.1\r\nHost: 127.0.0.1\r\n"
            f"Authorization: Bearer {target.token}\r\n\r\n".encode()
        )
        time.sleep(2)
        target.is_well()
        assert session.end().status == 200
        follower.close()
        assert watch.most < MEMORY, f"{watch.most} MiB"
