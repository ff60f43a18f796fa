//! What the tool table makes: the `Tool` trait, the request and response enums, and the rows.

use std::borrow::Cow;
use std::fmt;

use schemars::{JsonSchema, Schema};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer, Serialize};

use crate::any::Any;
use crate::principal::Level;
use crate::request::*;
use crate::timing::ToolTiming;

/// A native tool as a type: its request, its response and its row of the table.
///
/// Implemented by the markers in [`tools`]; the table makes them. Code for any tool names its types
/// through the marker:
///
/// ```
/// use ringback_proto::{Tool, request::PongResponse, tool::tools::Ping};
///
/// fn handle<T: Tool>(request: T::Request, handler: fn(T::Request) -> T::Response) {
///     handler(request);
/// }
/// handle::<Ping>(Default::default(), |_| PongResponse { uptime_ms: 1, version: "1".into() });
/// ```
///
/// so that the response of another tool does not compile:
///
/// ```compile_fail,E0308
/// use ringback_proto::{Tool, request::SleptResponse, tool::tools::Ping};
///
/// fn handle<T: Tool>(request: T::Request, handler: fn(T::Request) -> T::Response) {
///     handler(request);
/// }
/// handle::<Ping>(Default::default(), |_| SleptResponse { milliseconds: 1 });
/// ```
pub trait Tool {
    /// What the caller sends.
    type Request: Serialize + DeserializeOwned + JsonSchema + Into<ToolRequest>;
    /// What the caller gets.
    type Response: Serialize
        + DeserializeOwned
        + JsonSchema
        + Into<ToolResponse>
        + TryFrom<ToolResponse>;

    /// The name on every wire.
    const NAME: &'static str;
    /// How long it takes.
    const TIMING: ToolTiming;
    /// What it does, for whoever chooses a tool.
    const DESCRIPTION: &'static str;
    /// Its row of the table.
    const ROW: &'static ToolRow;
}

/// How the audit tells of a tool's calls. Refusals are always told one by one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Audit {
    /// Each call by itself.
    Each,
    /// As a count: too frequent and too harmless for more.
    Counted,
}

/// One row of the tool table.
pub struct ToolRow {
    /// Which tool; also its place in [`TOOLS`].
    pub kind: ToolKind,
    /// The name on every wire.
    pub name: &'static str,
    /// How long it takes.
    pub timing: ToolTiming,
    /// Whether a call makes a job record.
    pub makes_job: bool,
    /// The least level that may call it.
    pub level: Level,
    /// How the audit tells of it.
    pub audit: Audit,
    /// What it does.
    pub description: &'static str,
    /// The JSON Schema of its request.
    pub request_schema: fn() -> Schema,
    /// The JSON Schema of its response.
    pub response_schema: fn() -> Schema,
}

impl ToolRow {
    /// Whether a repeat of the same call must not run again.
    #[must_use]
    pub const fn recognises_repeats(&self) -> bool {
        self.makes_job || !matches!(self.level, Level::Read)
    }

    /// What it does, with what a model that called it does with a job.
    #[must_use]
    pub fn described(&self) -> Cow<'static, str> {
        if !self.makes_job {
            return self.description.into();
        }
        let when = match self.timing {
            ToolTiming::Sync => return self.description.into(),
            ToolTiming::AsyncShort | ToolTiming::AsyncMedium => {
                let secs = self.timing.edge_wait().as_secs();
                format!("If it takes longer than {secs} s it answers with a job_id")
            }
            ToolTiming::AsyncLong | ToolTiming::FireAndForget => {
                "It answers with a job_id at once".to_owned()
            }
        };
        let what = self.description;
        format!("{what} {when}; wait for that with job_poll, read it with job_status.").into()
    }
}

impl fmt::Debug for ToolRow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ToolRow").field("name", &self.name).finish_non_exhaustive()
    }
}

/// The schema of a type as tools show it: JSON Schema 2020-12, everything inline, and no `default`,
/// which some clients reject.
#[must_use]
pub fn schema_of<T: JsonSchema>() -> Schema {
    let mut schema = schemars::generate::SchemaSettings::draft2020_12()
        .with(|settings| settings.inline_subschemas = true)
        .into_generator()
        .into_root_schema_for::<T>();
    without_default(&mut schema);
    schema
}

fn without_default(schema: &mut Schema) {
    schema.remove("default");
    schemars::transform::transform_subschemas(&mut without_default, schema);
}

macro_rules! define_responses {
    ($($(#[$doc:meta])* $variant:ident($response:ident) = $name:literal;)*) => {
        /// Every answer of a native tool, and the answers of others as they came. The tag on the wire
        /// is `type`.
        #[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
        #[serde(tag = "type")]
        pub enum ToolResponse {
            $($(#[$doc])* #[serde(rename = $name)] $variant($response),)*
            /// Of a tool on a line: its own bytes, in the encoding of the edge it leaves through.
            /// Edges put them into their replies as they are.
            #[serde(skip)]
            Passed(Any),
        }

        impl ToolResponse {
            /// The tag on the wire.
            #[must_use]
            pub const fn type_name(&self) -> &'static str {
                match self {
                    $(Self::$variant(_) => $name,)*
                    Self::Passed(_) => "passed",
                }
            }
        }

        $(
            impl From<$response> for ToolResponse {
                fn from(response: $response) -> Self {
                    Self::$variant(response)
                }
            }

            impl TryFrom<ToolResponse> for $response {
                type Error = ToolResponse;

                fn try_from(response: ToolResponse) -> Result<Self, ToolResponse> {
                    match response {
                        ToolResponse::$variant(response) => Ok(response),
                        other => Err(other),
                    }
                }
            }
        )*
    };
}

macro_rules! define_tools {
    ($(
        $variant:ident($request:ident) -> $response:ident {
            name: $name:literal,
            timing: $timing:ident,
            job: $job:literal,
            level: $level:ident,
            audit: $audit:ident,
            about: $about:literal,
        }
    )*) => {
        /// The native tools, in the order of the table.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum ToolKind {
            $(#[doc = $about] $variant,)*
        }

        /// A call of a native tool. The tag on the wire is `tool`.
        #[derive(Debug, Clone, PartialEq, Serialize)]
        #[serde(tag = "tool")]
        pub enum ToolRequest {
            $(#[doc = $about] #[serde(rename = $name)] $variant($request),)*
        }

        impl ToolRequest {
            /// The tool's row of the table.
            #[must_use]
            pub const fn row(&self) -> &'static ToolRow {
                match self {
                    $(Self::$variant(_) => <tools::$variant as Tool>::ROW,)*
                }
            }

            /// Reads the request of the tool with this name; `None` if no native tool has it.
            ///
            /// # Errors
            /// What the format says of fields that do not fit.
            pub fn deserialize_named<'de, D: Deserializer<'de>>(
                name: &str,
                fields: D,
            ) -> Option<Result<Self, D::Error>> {
                match name {
                    $($name => Some($request::deserialize(fields).map(Self::$variant)),)*
                    _ => None,
                }
            }
        }

        /// Every native tool, in the order of the table.
        pub static TOOLS: &[&ToolRow] = &[$(<tools::$variant as Tool>::ROW,)*];

        /// One marker type for each native tool.
        pub mod tools {
            use super::*;

            $(
                #[doc = $about]
                #[derive(Debug, Clone, Copy)]
                pub struct $variant;

                impl Tool for $variant {
                    type Request = $request;
                    type Response = $response;

                    const NAME: &'static str = $name;
                    const TIMING: ToolTiming = ToolTiming::$timing;
                    const DESCRIPTION: &'static str = $about;
                    const ROW: &'static ToolRow = &ToolRow {
                        kind: ToolKind::$variant,
                        name: $name,
                        timing: ToolTiming::$timing,
                        makes_job: $job,
                        level: Level::$level,
                        audit: Audit::$audit,
                        description: $about,
                        request_schema: schema_of::<$request>,
                        response_schema: schema_of::<$response>,
                    };
                }
            )*
        }

        $(
            impl From<$request> for ToolRequest {
                fn from(request: $request) -> Self {
                    Self::$variant(request)
                }
            }
        )*
    };
}

crate::response_table!(define_responses);
crate::tool_table!(define_tools);

/// The row of a native tool.
#[must_use]
pub fn find(name: &str) -> Option<&'static ToolRow> {
    TOOLS.iter().copied().find(|row| row.name == name)
}
