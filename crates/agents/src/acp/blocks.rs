//! The content blocks of a message: its text, and its attachments if the agent accepts them and
//! they fit into an input line. Other attachments are links: the agent has the files in its
//! workspace.

use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Serialize;

use super::read::PromptCapabilities;
use crate::attachment::MessageAttachment;
use crate::handle::QueuedMessage;

/// The most bytes of a link: a name of 200 bytes, twice, once with three characters for each, and a
/// type.
const LINK_BYTES: usize = 2048;
/// The longest media type that is passed on.
const MIME_BYTES_MAX: usize = 128;

/// A content block of a message.
#[derive(Debug, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum Block<'a> {
    Text {
        text: &'a str,
    },
    #[serde(rename_all = "camelCase")]
    Image {
        mime_type: &'a str,
        data: String,
    },
    #[serde(rename_all = "camelCase")]
    Audio {
        mime_type: &'a str,
        data: String,
    },
    Resource {
        resource: Resource<'a>,
    },
    #[serde(rename_all = "camelCase")]
    ResourceLink {
        uri: String,
        name: &'a str,
        #[serde(skip_serializing_if = "Option::is_none")]
        mime_type: Option<&'a str>,
        size: usize,
    },
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Resource<'a> {
    uri: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    mime_type: Option<&'a str>,
    text: &'a str,
}

/// Returns the content blocks of a message.
pub(super) fn of<'a>(
    told: &'a QueuedMessage,
    workspace: &Path,
    takes: PromptCapabilities,
) -> Vec<Block<'a>> {
    let mut blocks = vec![Block::Text { text: &told.text }];
    let links = told.attached.len() * LINK_BYTES;
    let mut room = told.room.saturating_sub(links);
    for attached in &told.attached {
        match shown(attached, workspace, takes) {
            Some((block, n_bytes)) if n_bytes <= room => {
                room -= n_bytes;
                blocks.push(block);
            }
            // If not even links fit, the agent can still find the file in its workspace.
            Some(_) | None if links <= told.room => blocks.push(link(attached, workspace)),
            Some(_) | None => {}
        }
    }
    blocks
}

/// Returns the content of a file as a block, with the bytes it takes.
fn shown<'a>(
    attached: &'a MessageAttachment,
    workspace: &Path,
    takes: PromptCapabilities,
) -> Option<(Block<'a>, usize)> {
    let mime_type = mime(attached);
    let data = attached.data.as_ref()?;
    let encoded = || STANDARD.encode(data);
    // Base64 takes four bytes for three, and text in JSON up to six for one.
    if takes.images && attached.is_a("image/") {
        let n_bytes = data.len().div_ceil(3) * 4;
        return Some((Block::Image { mime_type: mime_type?, data: encoded() }, n_bytes));
    }
    if takes.audio && attached.is_a("audio/") {
        let n_bytes = data.len().div_ceil(3) * 4;
        return Some((Block::Audio { mime_type: mime_type?, data: encoded() }, n_bytes));
    }
    let text = attached.text().filter(|_| takes.files)?;
    let n_bytes = serde_json::Value::from(text).to_string().len();
    let resource = Resource { uri: attached.uri(workspace), mime_type, text };
    Some((Block::Resource { resource }, n_bytes))
}

fn link<'a>(attached: &'a MessageAttachment, workspace: &Path) -> Block<'a> {
    Block::ResourceLink {
        uri: attached.uri(workspace),
        name: &attached.name,
        mime_type: mime(attached),
        size: attached.size,
    }
}

fn mime(attached: &MessageAttachment) -> Option<&str> {
    attached.mime_type.as_deref().filter(|mime| mime.len() <= MIME_BYTES_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: PromptCapabilities = PromptCapabilities { images: true, audio: true, files: true };

    fn attached(name: &str, mime_type: &str, data: &[u8]) -> MessageAttachment {
        let (name, size, data) = (name.to_owned(), data.len(), Some(data.to_vec().into()));
        let mime_type = (!mime_type.is_empty()).then(|| mime_type.to_owned());
        MessageAttachment { name, mime_type, size, data }
    }

    fn written(
        attached: Vec<MessageAttachment>,
        room: usize,
        takes: PromptCapabilities,
    ) -> Vec<String> {
        let told = QueuedMessage { text: "look".to_owned(), attached, room, n_aborts: 0 };
        let blocks = of(&told, Path::new("/workspace"), takes);
        blocks.iter().map(|block| serde_json::to_string(block).unwrap()).collect()
    }

    /// REQ: "Attachments arrive as files in the workspace or content blocks", as the agent takes them.
    #[test]
    fn a_file_is_shown_as_the_agent_takes_it_and_else_linked_to() {
        let files = || {
            vec![
                attached("a b.png", "image/png", b"\x89PNG"),
                attached("n.txt", "", b"hi"),
                attached("z", "", b"\0"),
            ]
        };
        let shown = written(files(), 1 << 20, ALL);
        assert_eq!(
            shown,
            [
                r#"{"type":"text","text":"look"}"#,
                r#"{"type":"image","mimeType":"image/png","data":"iVBORw=="}"#,
                r#"{"type":"resource","resource":{"uri":"file:///workspace/n.txt","text":"hi"}}"#,
                r#"{"type":"resource_link","uri":"file:///workspace/z","name":"z","size":1}"#,
            ]
        );
        let linked = written(files(), 1 << 20, PromptCapabilities::default());
        assert_eq!(linked.iter().filter(|block| block.contains("resource_link")).count(), 3);
        assert!(linked[1].contains(r#""uri":"file:///workspace/a%20b.png""#), "{linked:?}");
    }

    /// Rule: an input line keeps its limit whatever is attached to a message.
    #[test]
    fn what_a_line_has_no_room_for_is_linked_to_or_left_out() {
        let files =
            || vec![attached("a", "audio/wav", &[7; 3000]), attached("b", "", &[b'"'; 3000])];
        for (room, n_shown, n_linked) in [(20_000, 2, 0), (9_000, 1, 1), (5_000, 0, 2), (100, 0, 0)]
        {
            let blocks = written(files(), room, ALL);
            let n_links = blocks.iter().filter(|block| block.contains("resource_link")).count();
            assert_eq!((blocks.len() - 1 - n_links, n_links), (n_shown, n_linked), "{room}");
            assert!(blocks[1..].iter().map(String::len).sum::<usize>() <= room);
        }
    }
}
