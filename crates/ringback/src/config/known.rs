//! Providers that need no configuration but a key, if that.

use ringback_egress::KeyHeader;

/// The API of a provider or an agent.
const OPENAI: Option<&str> = Some("openai");

/// A provider that everybody knows.
#[derive(Debug)]
pub(crate) struct KnownProvider {
    pub(crate) name: &'static str,
    /// Its address, or an example of one: these belong to an account or a region.
    pub(crate) address: Address,
    pub(crate) header: KeyHeader,
    /// Whether it needs a key: the secret of its own name.
    pub(crate) has_key: bool,
    /// The API it offers, as far as presets speak it; with none, nothing is checked.
    pub(crate) api: Option<&'static str>,
    /// The variables in which people have its key, the first of them preferred.
    pub(crate) variables: &'static [&'static str],
}

/// The address of a known provider.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Address {
    /// The same for everybody.
    Fixed(&'static str),
    /// An example of what to configure.
    Own(&'static str),
}

const ALL: [KnownProvider; 9] = [
    KnownProvider {
        name: "anthropic",
        address: Address::Fixed("https://api.anthropic.com"),
        header: KeyHeader::XApiKey,
        has_key: true,
        api: Some("anthropic"),
        variables: &["ANTHROPIC_API_KEY"],
    },
    KnownProvider {
        name: "azure",
        address: Address::Own("https://RESOURCE.openai.azure.com/openai"),
        header: KeyHeader::ApiKey,
        has_key: true,
        api: OPENAI,
        variables: &["AZURE_OPENAI_API_KEY", "AZURE_API_KEY"],
    },
    KnownProvider {
        name: "bedrock",
        address: Address::Own("https://bedrock-runtime.REGION.amazonaws.com/openai"),
        header: KeyHeader::Authorization,
        has_key: true,
        api: OPENAI,
        variables: &["AWS_BEARER_TOKEN_BEDROCK"],
    },
    KnownProvider {
        name: "google",
        address: Address::Fixed("https://generativelanguage.googleapis.com"),
        header: KeyHeader::XGoogApiKey,
        has_key: true,
        api: Some("google"),
        variables: &["GEMINI_API_KEY", "GOOGLE_API_KEY"],
    },
    KnownProvider {
        name: "lmstudio",
        address: Address::Fixed("http://127.0.0.1:1234"),
        header: KeyHeader::Authorization,
        has_key: false,
        api: OPENAI,
        variables: &[],
    },
    KnownProvider {
        name: "ollama",
        address: Address::Fixed("http://127.0.0.1:11434"),
        header: KeyHeader::Authorization,
        has_key: false,
        api: OPENAI,
        variables: &[],
    },
    KnownProvider {
        name: "openai",
        address: Address::Fixed("https://api.openai.com"),
        header: KeyHeader::Authorization,
        has_key: true,
        api: OPENAI,
        variables: &["OPENAI_API_KEY"],
    },
    KnownProvider {
        name: "openrouter",
        address: Address::Fixed("https://openrouter.ai/api"),
        header: KeyHeader::Authorization,
        has_key: true,
        api: OPENAI,
        variables: &["OPENROUTER_API_KEY"],
    },
    KnownProvider {
        name: "vertex",
        address: Address::Own("https://REGION-aiplatform.googleapis.com/PATH"),
        header: KeyHeader::Authorization,
        has_key: true,
        // It has the APIs of several vendors, each at a path of its own.
        api: None,
        variables: &[],
    },
];

impl KnownProvider {
    pub(crate) fn all() -> &'static [Self] {
        &ALL
    }

    pub(crate) fn of(name: &str) -> Option<&'static Self> {
        ALL.iter().find(|known| known.name == name)
    }

    /// Returns what to do about a provider whose address is not configured.
    pub(crate) fn advice(&self) -> Option<String> {
        let Address::Own(example) = self.address else { return None };
        let name = self.name;
        Some(format!(
            "provider `{name}` has no address of its own; set `url` in `[providers.{name}]` of the \
             configuration, such as `url = \"{example}\"`, and restart the daemon"
        ))
    }
}

/// Returns their names, for messages.
pub(super) fn names() -> String {
    ALL.iter().map(|known| known.name).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use ringback_agents::preset::presets;

    use super::*;

    /// Rule: each preset's own provider is known, and offers the API that the preset speaks.
    #[test]
    fn each_preset_has_a_provider_that_needs_no_configuration() {
        for preset in presets() {
            let known = KnownProvider::of(preset.provider()).unwrap();
            assert_eq!(known.api, Some(preset.provider()), "{}", preset.name);
            assert!(known.advice().is_none() && !known.variables.is_empty());
        }
    }

    /// Rule: a key is never sent in the clear to another machine.
    #[test]
    fn a_known_provider_has_a_key_or_is_on_this_machine() {
        for known in KnownProvider::all() {
            let Address::Fixed(address) = known.address else { continue };
            let is_here = address.starts_with("http://127.0.0.1:");
            assert_eq!(known.has_key, !is_here, "{}", known.name);
            assert!(is_here || address.starts_with("https://"), "{}", known.name);
        }
    }
}
