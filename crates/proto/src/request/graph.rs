//! The graph: identities, their hints, tags and connections, and what was made.

use super::wire_struct;
use crate::wire_enum::wire_enum;

wire_enum! {
    /// The kind of a hint: by what a device or program is recognised.
    HintKind {
        /// Vendor and product of a USB device.
        UsbDeviceId = "usb_device_id",
        /// The serial number of a USB device.
        UsbSerial = "usb_serial",
        /// Where a USB device is plugged in.
        UsbPath = "usb_path",
        /// The name of a MIDI port.
        MidiName = "midi_name",
        /// The name of an ALSA card.
        AlsaCard = "alsa_card",
        /// The hardware address of an ALSA device.
        AlsaHw = "alsa_hw",
        /// The name of a PipeWire node.
        PipewireName = "pipewire_name",
        /// The ALSA path of a PipeWire node.
        PipewireAlsaPath = "pipewire_alsa_path",
    }

    /// How well the hints of an identity match.
    HintMatch {
        /// The confidences add up to at least 1.
        High = "high",
        /// The confidences add up to at least 0.5.
        Medium = "medium",
        /// Less.
        Low = "low",
    }
}

wire_struct! {
    /// A hint that is given.
    GraphHint {
        /// Its kind.
        kind: HintKind,
        /// Its value.
        value: String,
        /// How sure it is, from 0 to 1; 1 if absent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        confidence: Option<f64>,
    }

    /// A hint of an identity.
    GraphHintInfo {
        /// Its kind.
        kind: HintKind,
        /// Its value.
        value: String,
        /// How sure it is, from 0 to 1.
        confidence: f64,
    }

    /// A tag of an identity.
    GraphTag {
        /// Its namespace.
        namespace: String,
        /// Its value.
        value: String,
    }

    /// An identity to create, or to add hints to.
    GraphBindRequest {
        /// Its id: a name of your choice, unique among your identities.
        id: String,
        /// Its name for people; replaces an earlier one.
        name: String,
        /// What it is recognised by. A hint that it has already gets the new confidence.
        #[serde(default, deserialize_with = "super::null_as_default")]
        #[schemars(with = "Option<Vec<GraphHint>>")]
        hints: Vec<GraphHint>,
    }

    /// The identity.
    GraphIdentityResponse {
        /// Its id.
        id: String,
        /// Its name.
        name: String,
        /// When it was created.
        created_at: u64,
        /// All its hints.
        hints: Vec<GraphHintInfo>,
    }

    /// A tag to add to an identity.
    GraphTagRequest {
        /// The id of the identity: yours, or else one that you see.
        identity_id: String,
        /// The namespace of the tag.
        namespace: String,
        /// The value of the tag.
        value: String,
    }

    /// All tags of the identity.
    GraphTagsResponse {
        /// The id of the identity.
        identity_id: String,
        /// Its tags, in order.
        tags: Vec<GraphTag>,
    }

    /// Two ports to connect.
    GraphConnectRequest {
        /// The identity that sends: yours, or else one that you see.
        from_identity: String,
        /// Its port.
        from_port: String,
        /// The identity that receives: yours, or else one that you see.
        to_identity: String,
        /// Its port.
        to_port: String,
        /// What carries the signal, such as `midi` or `audio`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        transport: Option<String>,
    }

    /// The connection.
    GraphConnectionResponse {
        /// The identity that sends.
        from_identity: String,
        /// Its port.
        from_port: String,
        /// The identity that receives.
        to_identity: String,
        /// Its port.
        to_port: String,
        /// What carries the signal.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        transport: Option<String>,
        /// When it was first made.
        created_at: u64,
    }

    /// The identities to find: those that match every field.
    #[derive(Default)]
    GraphFindRequest {
        /// A part of the name, in capital or small letters.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        name: Option<String>,
        /// The namespace of a tag.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        tag_namespace: Option<String>,
        /// The value of a tag.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        tag_value: Option<String>,
        /// Hints of which it has at least one. Your confidence weighs each.
        #[serde(default, deserialize_with = "super::null_as_default")]
        #[schemars(with = "Option<Vec<GraphHint>>")]
        hints: Vec<GraphHint>,
        /// The maximum number of identities to return: default 50, at most 500.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        limit: Option<u32>,
        /// The `next_cursor` of the previous page.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cursor: Option<String>,
    }

    /// A page of identities, newest first.
    GraphIdentitiesResponse {
        /// The identities.
        identities: Vec<GraphFoundIdentity>,
        /// The number of identities on this page.
        count: u64,
        /// The cursor of the next page; absent on the last page.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        next_cursor: Option<String>,
    }

    /// An identity that was found.
    GraphFoundIdentity {
        /// Its id.
        id: String,
        /// Its name.
        name: String,
        /// Whether it is yours. Another owner's may have the same id.
        yours: bool,
        /// When it was created.
        created_at: u64,
        /// Its hints.
        hints: Vec<GraphHintInfo>,
        /// Its tags, in order.
        tags: Vec<GraphTag>,
        /// How well it matches the hints of the request, if there were any.
        #[serde(default, rename = "match", skip_serializing_if = "Option::is_none")]
        matches: Option<HintMatch>,
    }

    /// What to describe.
    #[derive(Default)]
    GraphContextRequest {
        /// The maximum number of artifacts: default 20, at most 500.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        limit: Option<u32>,
        /// Only artifacts with this tag.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        tag: Option<String>,
        /// Only artifacts by this creator.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        creator: Option<String>,
        /// Only artifacts with these words in an annotation's vibe or message, a tag or the creator.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        vibe_search: Option<String>,
        /// Only what happened in the last minutes.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        within_minutes: Option<u32>,
        /// Whether to include annotations; true if absent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        include_annotations: Option<bool>,
        /// Whether to include metadata; false if absent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        include_metadata: Option<bool>,
    }

    /// What was made, what failed and what waits.
    GraphContextResponse {
        /// The description: plain text of at most 8 KiB, newest first.
        context: String,
        /// The number of artifacts in it.
        artifact_count: u64,
        /// The number of identities in it.
        identity_count: u64,
    }
}
