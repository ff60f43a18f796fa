//! `ringback session attach`: this terminal talks to an agent, and serves tools if it names some.

use ringback_client::Client;
use ringback_proto::ids::SessionId;
use ringback_proto::request::SessionMessageRequest;
use ringback_proto::tool::tools::SessionMessage;

use super::caller::{self, CallerArgs};
use super::follow;
use super::keyboard::Keyboard;
use super::transcript::Transcript;
use crate::failure::Failure;
use crate::screen::Screen;

pub(super) async fn run(
    client: &Client,
    screen: Screen,
    session: SessionId,
    caller: &CallerArgs,
) -> Result<(), Failure> {
    let context = caller.context()?;
    let transcript = Transcript::new(screen, session, &caller.names());
    let mut keyboard = Keyboard::talking(screen, &transcript, session)?;
    screen.remark(
        "each line is a message; Ctrl-C detaches now, Ctrl-D (end of input) detaches when the agent \
         is idle; the session stays open",
    );
    if context.is_some() {
        let (session_id, message) = (Some(session), String::new());
        let offer = SessionMessageRequest { session_id, message, context, ..Default::default() };
        client.call::<SessionMessage>(offer).await?;
    }
    let follow = follow::follow(client, &transcript, session, false, &mut keyboard);
    if caller.tools.is_empty() {
        follow.await?;
    } else {
        tokio::select! {
            followed = follow => drop(followed?),
            served = caller::serve(client, screen, &transcript, session, &caller.tools) => {
                match served? {}
            }
        }
    }
    follow::show_totals(client, &transcript, session).await
}
