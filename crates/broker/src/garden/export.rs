//! The timeline as a file: the garden renders it and stores the content.

use std::time::Duration;

use ringback_proto::Result;
use ringback_proto::garden::SERVICE;
use ringback_proto::garden::command::{self, ExportAnswer, ExportArguments};
use ringback_proto::ids::JobId;

use super::Garden;

/// An hour of sixty-four regions takes about a minute.
const EXPORT_WAIT: Duration = Duration::from_secs(600);

impl Garden {
    /// Renders a part of the timeline. Dropping this stops the work.
    pub(crate) async fn export(
        &self,
        job: Option<JobId>,
        arguments: &ExportArguments,
    ) -> Result<ExportAnswer> {
        self.ready(command::EXPORT).await?;
        self.ask(SERVICE, command::EXPORT, arguments, job, EXPORT_WAIT).await
    }
}
