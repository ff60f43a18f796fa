//! The types generated from the tool table: the `Tool` trait, the request and response enums, and
//! the rows.

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
/// Implemented by the markers in [`tools`], which the table generates. Code for any tool names its
/// types through the marker:
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
    /// The type of the request.
    type Request: Serialize + DeserializeOwned + JsonSchema + Into<ToolRequest>;
    /// The type of the response.
    type Response: Serialize
        + DeserializeOwned
        + JsonSchema
        + Into<ToolResponse>
        + TryFrom<ToolResponse>;

    /// The name on every wire.
    const NAME: &'static str;
    /// Its timing class.
    const TIMING: ToolTiming;
    /// Its description, for choosing a tool.
    const DESCRIPTION: &'static str;
    /// Its row of the table.
    const ROW: &'static ToolRow;
}

/// How the audit log records a tool's calls. Refusals are always recorded one by one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Audit {
    /// Each call separately.
    Each,
    /// As a count: too frequent and too harmless for more.
    Counted,
}

/// One row of the tool table.
pub struct ToolRow {
    /// The tool; also its index in [`TOOLS`].
    pub kind: ToolKind,
    /// The name on every wire.
    pub name: &'static str,
    /// Its timing class.
    pub timing: ToolTiming,
    /// Whether a call creates a job record.
    pub makes_job: bool,
    /// The minimum scope to call it.
    pub level: Level,
    /// How the audit log records it.
    pub audit: Audit,
    /// The service whose line does its work, if the daemon does not do it itself. Only principals
    /// that may do everything hold such a service, and its tools are listed only as rows.
    pub service: Option<&'static str>,
    /// Its description.
    pub description: &'static str,
    /// The JSON Schema of its request.
    pub request_schema: fn() -> Schema,
    /// The JSON Schema of its response.
    pub response_schema: fn() -> Schema,
}

impl ToolRow {
    /// Returns whether a repeat of the same call must not run again.
    #[must_use]
    pub const fn recognises_repeats(&self) -> bool {
        self.makes_job || !matches!(self.level, Level::Read)
    }

    /// Returns the description for a model, including how to handle a job.
    #[must_use]
    pub fn described(&self) -> Cow<'static, str> {
        if !self.makes_job {
            return self.description.into();
        }
        let when = match self.timing {
            ToolTiming::Sync => return self.description.into(),
            ToolTiming::AsyncShort | ToolTiming::AsyncMedium => {
                let secs = self.timing.edge_wait().as_secs();
                format!("If it takes longer than {secs} s, it answers with a job_id")
            }
            ToolTiming::AsyncLong => "It answers with a job_id immediately".to_owned(),
            ToolTiming::FireAndForget => return self.description.into(),
        };
        let what = self.description;
        format!(
            "{what} {when}; wait for the job with job_poll, then read its result with job_status."
        )
        .into()
    }
}

impl fmt::Debug for ToolRow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ToolRow").field("name", &self.name).finish_non_exhaustive()
    }
}

/// Returns the schema of a type as tools publish it: JSON Schema 2020-12, everything inline, and no
/// `default`, which some clients reject.
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
        /// The responses of all native tools, and the responses of other tools as received. The tag
        /// on the wire is `type`.
        #[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
        #[serde(tag = "type")]
        pub enum ToolResponse {
            $($(#[$doc])* #[serde(rename = $name)] $variant($response),)*
            /// Of a tool on a line: its own bytes, in the encoding of the requesting edge. Edges
            /// put them into their replies unchanged.
            #[serde(skip)]
            Passed(Any),
        }

        impl ToolResponse {
            /// Returns the tag on the wire.
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

macro_rules! service_of {
    () => {
        None
    };
    ($service:path) => {
        Some($service)
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
            $(service: $service:path,)?
            about: $about:literal,
        }
    )*) => {
        /// The native tools, in the order of the table.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum ToolKind {
            $(#[doc = $about] $variant,)*
        }

        /// A call to a native tool. The tag on the wire is `tool`.
        #[derive(Debug, Clone, PartialEq, Serialize)]
        #[serde(tag = "tool")]
        pub enum ToolRequest {
            $(#[doc = $about] #[serde(rename = $name)] $variant($request),)*
        }

        impl ToolRequest {
            /// Returns the tool's row of the table.
            #[must_use]
            pub const fn row(&self) -> &'static ToolRow {
                match self {
                    $(Self::$variant(_) => <tools::$variant as Tool>::ROW,)*
                }
            }

            /// Reads the request of the tool with this name; `None` if it is not a native tool.
            ///
            /// # Errors
            /// The format's error for fields that do not match.
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
                        service: service_of!($($service)?),
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

/// Returns whether rows name this service as the one that does their work.
#[must_use]
pub fn is_service_of_rows(service: &str) -> bool {
    TOOLS.iter().any(|row| row.service == Some(service))
}

/// Returns the row of a native tool.
#[must_use]
pub fn find(name: &str) -> Option<&'static ToolRow> {
    TOOLS.iter().copied().find(|row| row.name == name)
}
