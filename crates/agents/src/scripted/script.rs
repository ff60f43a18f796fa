//! The script language: one step per line of text, each a JSON object with a single key.

use ringback_mcp_wire::RawValue;
use serde::Deserialize;

/// Stands for the message in a text.
const MESSAGE_MARK: &str = "$message";
/// The default time limit of a call.
const CALL_MS_DEFAULT: u64 = 120_000;
const WAIT_MS_DEFAULT: u64 = 10_000;

/// A step.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub(super) enum Step {
    /// Say something; `$message` stands for the message that started the script.
    Say(String),
    /// Think something.
    Think(String),
    /// Report a plan.
    Plan(Vec<String>),
    /// Repeat the messages of earlier turns, if it stores conversations.
    Recall {},
    /// List the attachments of the message.
    Attached {},
    /// Request permission; the answer is the last result.
    Ask { tool: String },
    /// List the tools, and log their names.
    List {},
    /// Call a tool.
    Call(Call),
    /// Call several concurrently.
    Together(Vec<Call>),
    /// Start a child session, or send a message to one.
    Child(Child),
    /// Wait until the server announces a change of its tool list.
    WaitChange {
        #[serde(default = "wait_ms_default")]
        timeout_ms: u64,
    },
    /// Wait until a tool of this name exists.
    WaitTool {
        tool: String,
        #[serde(default = "wait_ms_default")]
        timeout_ms: u64,
    },
    /// Sleep for a number of milliseconds.
    SleepMs(u64),
    /// Write a file, relative to the working directory.
    Write { path: String, text: String },
    /// Remove a file.
    Remove { path: String },
    /// Check the last result, and end with an error if it differs.
    Expect(Expectation),
    /// Say the text of the last result.
    Print {},
    /// Write an invalid output line a number of times.
    Garbage {
        text: String,
        #[serde(default = "one")]
        times: u64,
    },
    /// End the program.
    End {
        #[serde(default)]
        code: u8,
    },
}

/// A call of a tool.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Call {
    /// As the agent sees it.
    pub(super) tool: String,
    /// An object, as written in the script.
    #[serde(default)]
    pub(super) arguments: Option<Box<RawValue>>,
    /// The time limit.
    #[serde(default = "call_ms_default")]
    pub(super) timeout_ms: u64,
    /// When to cancel it.
    #[serde(default)]
    pub(super) cancel_after_ms: Option<u64>,
}

/// A child session.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Child {
    /// The message to it.
    pub(super) message: String,
    /// An existing session.
    #[serde(default)]
    pub(super) session_id: Option<String>,
}

/// The expected last result.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Expectation {
    /// Whether it failed.
    #[serde(default)]
    pub(super) is_error: Option<bool>,
    /// A part of its JSON.
    #[serde(default)]
    pub(super) contains: Option<String>,
}

/// An invalid line of a script.
#[derive(Debug, thiserror::Error)]
#[error("line {line} of the script is not a valid step: {reason}")]
pub(super) struct ScriptError {
    line: usize,
    reason: serde_json::Error,
}

/// Reads a script. A text that does not start with `{` or `#` is not a script: it is echoed.
pub(super) fn parse(text: &str, message: &str) -> Result<Vec<Step>, ScriptError> {
    if !text.trim_start().starts_with(['{', '#']) {
        return Ok(vec![Step::Say(text.to_owned())]);
    }
    let mut steps = Vec::new();
    for (idx, line) in text.lines().enumerate() {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        match serde_json::from_str(line) {
            Ok(Step::Say(text)) => steps.push(Step::Say(text.replace(MESSAGE_MARK, message))),
            Ok(step) => steps.push(step),
            Err(reason) => return Err(ScriptError { line: idx + 1, reason }),
        }
    }
    Ok(steps)
}

const fn call_ms_default() -> u64 {
    CALL_MS_DEFAULT
}

const fn wait_ms_default() -> u64 {
    WAIT_MS_DEFAULT
}

const fn one() -> u64 {
    1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_step_is_read() {
        let text = r#"
            # a comment
            {"say":"you said: $message"}
            {"think":"hm"}
            {"plan":["a","b"]}
            {"recall":{}}
            {"ask":{"tool":"rm"}}
            {"list":{}}
            {"call":{"tool":"ant_x","arguments":{"n":12345678901234567890},"cancel_after_ms":5}}
            {"together":[{"tool":"a"},{"tool":"b","timeout_ms":1}]}
            {"child":{"message":"go"}}
            {"wait_change":{}}
            {"wait_tool":{"tool":"x","timeout_ms":5}}
            {"sleep_ms":1}
            {"write":{"path":"a","text":"b"}}
            {"remove":{"path":"a"}}
            {"expect":{"is_error":false,"contains":"x"}}
            {"print":{}}
            {"garbage":{"text":"boo","times":3}}
            {"end":{}}
        "#;
        let steps = parse(text.trim_start(), "hi").unwrap();
        assert_eq!(steps.len(), 18);
        assert!(matches!(&steps[0], Step::Say(text) if text == "you said: hi"));
        let Step::Call(call) = &steps[6] else { unreachable!("a call") };
        let arguments = call.arguments.as_ref().unwrap();
        assert_eq!(arguments.get(), r#"{"n":12345678901234567890}"#);
    }

    #[test]
    fn a_text_that_is_no_script_is_said_back_and_a_wrong_step_is_named() {
        assert!(
            matches!(&parse("hello", "hello").unwrap()[..], [Step::Say(text)] if text == "hello")
        );
        let wrong = parse("{\"say\":\"a\"}\n{\"dance\":{}}", "").unwrap_err();
        assert!(wrong.to_string().starts_with("line 2"), "{wrong}");
        assert!(parse(r#"{"call":{"tool":"a","argument":{}}}"#, "").is_err());
    }
}
