//! A broker with limits that a test can reach.

use ringback_broker::Config;
use ringback_proto::ids::RequestId;
use ringback_testkit::Setup;
pub(crate) use ringback_testkit::{World, plain as call, reply, result};

/// Limits that are soon reached.
pub(crate) const fn small(config: &mut Config) {
    config.calls_per_principal_max = 64;
    (config.jobs_running_max, config.jobs_live_max) = (4, 8);
    config.jobs_per_principal_max = 8;
    config.events_kept_max = 1000;
    (config.uploads_open_max, config.upload_bytes_max) = (4, 1 << 20);
}

pub(crate) async fn start() -> World {
    start_with(|_| ()).await
}

pub(crate) async fn start_with(change: impl FnOnce(&mut Config)) -> World {
    Setup::new().config(small).config(change).start().await
}

pub(crate) fn request_id(number: u8) -> RequestId {
    RequestId::from_bytes([number; 16])
}
