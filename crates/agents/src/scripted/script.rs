//! What a script can say: one step per line, each a JSON object with one name in it.

use ringback_mcp_wire::RawValue;
use serde::Deserialize;

/// What stands for the message in a text that is said.
const MESSAGE_MARK: &str = "$message";
/// A call that takes longer is given up.
const CALL_MS_DEFAULT: u64 = 120_000;
const WAIT_MS_DEFAULT: u64 = 10_000;

/// One thing to do.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub(super) enum Step {
    /// Say something; `$message` stands for the message that started the script.
    Say(String),
    /// Think something.
    Think(String),
    /// Tell a plan.
    Plan(Vec<String>),
    /// Say what it was told in the turns before, if it keeps conversations.
    Recall {},
    /// Says what came with the message besides its text.
    Attached {},
    /// Ask for permission; the answer is the last result.
    Ask { tool: String },
    /// List the tools, and log their names.
    List {},
    /// Call a tool.
    Call(Call),
    /// Call several at once.
    Together(Vec<Call>),
    /// Start a child session, or send a message to one.
    Child(Child),
    /// Wait until the server announces another list of tools.
    WaitChange {
        #[serde(default = "wait_ms_default")]
        timeout_ms: u64,
    },
    /// Wait until there is a tool of this name.
    WaitTool {
        tool: String,
        #[serde(default = "wait_ms_default")]
        timeout_ms: u64,
    },
    /// Do nothing for so many milliseconds.
    SleepMs(u64),
    /// Write a file, from the directory it works in.
    Write { path: String, text: String },
    /// Remove a file.
    Remove { path: String },
    /// Check the last result, and end with an error if it is another one.
    Expect(Expected),
    /// Say the text of the last result.
    Print {},
    /// Write a line that is no event, so many times.
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
    /// An object, as it is written in the script.
    #[serde(default)]
    pub(super) arguments: Option<Box<RawValue>>,
    /// When to give up.
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
    /// One that is there already.
    #[serde(default)]
    pub(super) session_id: Option<String>,
}

/// What the last result is to be.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Expected {
    /// Whether it failed.
    #[serde(default)]
    pub(super) is_error: Option<bool>,
    /// What its JSON has in it.
    #[serde(default)]
    pub(super) contains: Option<String>,
}

/// A line that is no step.
#[derive(Debug, thiserror::Error)]
#[error("line {line} of the script is no step: {reason}")]
pub(super) struct Wrong {
    line: usize,
    reason: serde_json::Error,
}

/// Reads a script. A text that does not start with `{` or `#` is none: it is said back.
pub(super) fn parse(text: &str, message: &str) -> Result<Vec<Step>, Wrong> {
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
            Err(reason) => return Err(Wrong { line: idx + 1, reason }),
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
