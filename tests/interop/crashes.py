"""Kills, restarts and the end. These replace the daemon, so they come last."""

import subprocess

from harness import check, store
from wire import STOP_LIMIT, new_id


@check
def a_job_id_that_was_handed_out_survives_a_kill(world):
    request_id = new_id()
    with world.peer() as peer:
        job_id = peer.start_job(60000, request_id)
        world.restart()
    with world.peer() as peer:
        status = peer.success("job_status", {"job_id": job_id})
        assert status["status"] in ("pending", "running", "failed"), status
        if status["status"] == "failed":
            assert "interrupted" in str(status["error"]), status
        assert peer.start_job(60000, request_id) == job_id, "the retry ran again"
        peer.success("job_cancel", {"job_id": job_id})


@check
def running_work_is_interrupted_by_a_kill_and_says_so(world):
    with world.peer() as peer, world.subscriber("job.state_changed", "heads") as subscriber:
        epoch = subscriber.heads()["epoch"]
        job_id = peer.start_job(60000)
        subscriber.collect_until(
            lambda topic, message: topic == "job.state_changed"
            and (message["event"]["job_id"], message["event"]["state"]) == (job_id, "running")
        )
        hash_ = store(peer, b"kept")["hash"]
        world.restart()
    with world.peer() as peer, world.subscriber("heads") as subscriber:
        status = peer.success("job_status", {"job_id": job_id})
        assert status["status"] == "failed", status
        assert "interrupted" in str(status["error"]), status
        assert status["error"]["certainty"] in ("may_have_run", "ran"), status
        assert peer.success("cas_get", {"hash": hash_})["data"] == b"kept"
        assert subscriber.heads()["epoch"] != epoch, "the epoch did not change"


@check
def a_second_daemon_does_not_open_the_same_data_directory(world):
    daemon = world.daemon
    second = subprocess.run(
        daemon.command(), env=daemon.environment(), capture_output=True, timeout=STOP_LIMIT
    )
    assert second.returncode not in (0, None), second
    assert second.stderr.strip(), "it does not say why"
    with world.peer() as peer:
        peer.success("ping")


@check
def no_secret_is_in_the_log(world):
    assert world.daemon.token not in world.daemon.log_text()


@check
def sigterm_stops_the_daemon_cleanly(world):
    with world.peer() as peer:
        peer.start_job(60000)
        assert world.daemon.terminate() == 0
