//! The model of a session's agent: chosen when it starts, and how its requests go.

use super::wire_struct;

wire_struct! {
    /// The model of a session's agent, where it is not the configured one.
    #[derive(Default, Eq)]
    ModelChoice {
        /// Its provider: a configured one, or one that is built in.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        provider: Option<String>,
        /// Its name, as the provider knows it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        name: Option<String>,
        /// Whether a `model_key` follows with the first message. Without a key, a session whose
        /// provider needs one does not start.
        #[serde(default, deserialize_with = "super::null_as_default")]
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        #[schemars(with = "Option<bool>")]
        key_follows: bool,
    }

    /// The model of a session's agent.
    #[derive(Eq)]
    SessionModel {
        /// Its provider.
        provider: String,
        /// Its name, if the daemon configures it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        name: Option<String>,
        /// The last failure, while no request since the last message has succeeded.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        failure: Option<ModelFailure>,
    }

    /// Why an agent got nothing from its model.
    #[derive(Eq)]
    ModelFailure {
        /// The status of the answer; absent if there was no request, or no answer.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        status: Option<u16>,
        /// The cause.
        cause: String,
        /// Where the key came from: `secret NAME`, `key_file PATH` or `session`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        key: Option<String>,
    }
}
