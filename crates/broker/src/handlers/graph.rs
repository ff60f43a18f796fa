//! The graph: `graph_*`.

mod context;

use ringback_core::policy::Provenance;
use ringback_proto::record::{ConnectionRecord, HintRecord, IdentityKey, IdentityRecord, Record};
use ringback_proto::request::{
    GraphBindRequest, GraphConnectRequest, GraphConnectionResponse, GraphContextRequest,
    GraphContextResponse, GraphFindRequest, GraphFoundIdentity, GraphHint, GraphHintInfo,
    GraphIdentitiesResponse, GraphIdentityResponse, GraphTag, GraphTagRequest, GraphTagsResponse,
    HintMatch,
};
use ringback_proto::tool::tools;
use ringback_proto::{Error, ErrorKind, Result};
use ringback_store::{IdentityFilter, NamedIdentity};

use super::{Native, check_text, list_limit};
use crate::handler::{Context, Handler};

/// The most characters of an id, a name, a port, a tag or the value of a hint.
const LABEL_CHARS_MAX: usize = 200;
/// The most hints of one request.
const HINTS_MAX: usize = 64;
/// The sums of confidences from which a match is high or medium.
const HIGH_MIN: f64 = 1.0;
const MEDIUM_MIN: f64 = 0.5;

impl Handler<tools::GraphBind> for Native {
    async fn handle(ctx: Context, request: GraphBindRequest) -> Result<GraphIdentityResponse> {
        let GraphBindRequest { id, name, hints } = request;
        check_text("id", &id, LABEL_CHARS_MAX)?;
        check_text("name", &name, LABEL_CHARS_MAX)?;
        let hints = checked(hints)?;
        let Provenance { project, session } = ctx.provenance();
        let record = IdentityRecord {
            key: IdentityKey { owner: ctx.principal.id, id: id.clone() },
            project,
            session,
            name,
            hints,
            tags: Vec::new(),
            created_at: ctx.now().unix,
        };
        ctx.commit(vec![Record::IdentityBound(record)]).await?;
        let IdentityRecord { key, name, hints, created_at, .. } = named(&ctx, "id", id).await?;
        let hints = hints.into_iter().map(hint_info).collect();
        Ok(GraphIdentityResponse { id: key.id, name, created_at, hints })
    }
}

impl Handler<tools::GraphTag> for Native {
    async fn handle(ctx: Context, request: GraphTagRequest) -> Result<GraphTagsResponse> {
        let GraphTagRequest { identity_id, namespace, value } = request;
        check_text("namespace", &namespace, LABEL_CHARS_MAX)?;
        check_text("value", &value, LABEL_CHARS_MAX)?;
        let identity = named(&ctx, "identity_id", identity_id.clone()).await?.key;
        let at = ctx.now().unix;
        ctx.commit(vec![Record::IdentityTagged { identity, namespace, value, at }]).await?;
        let identity = named(&ctx, "identity_id", identity_id).await?;
        Ok(GraphTagsResponse { identity_id: identity.key.id, tags: tags(identity.tags) })
    }
}

impl Handler<tools::GraphConnect> for Native {
    async fn handle(ctx: Context, request: GraphConnectRequest) -> Result<GraphConnectionResponse> {
        let GraphConnectRequest { from_identity, from_port, to_identity, to_port, transport } =
            request;
        check_text("from_port", &from_port, LABEL_CHARS_MAX)?;
        check_text("to_port", &to_port, LABEL_CHARS_MAX)?;
        if let Some(transport) = &transport {
            check_text("transport", transport, LABEL_CHARS_MAX)?;
        }
        let from = named(&ctx, "from_identity", from_identity).await?.key;
        let to = named(&ctx, "to_identity", to_identity).await?.key;
        let Provenance { project, session } = ctx.provenance();
        let owner = ctx.principal.id;
        let created_at = ctx.now().unix;
        let new = ConnectionRecord {
            owner,
            project,
            session,
            from,
            from_port,
            to,
            to_port,
            transport,
            created_at,
        };
        ctx.commit(vec![Record::IdentitiesConnected(new.clone())]).await?;
        let stored = ctx.read(move |store| store.graph().connection(&new)).await?;
        let stored = stored.ok_or_else(|| Error::internal("graph", "a lost connection"))?;
        Ok(GraphConnectionResponse {
            from_identity: stored.from.id,
            from_port: stored.from_port,
            to_identity: stored.to.id,
            to_port: stored.to_port,
            transport: stored.transport,
            created_at: stored.created_at,
        })
    }
}

impl Handler<tools::GraphFind> for Native {
    async fn handle(ctx: Context, request: GraphFindRequest) -> Result<GraphIdentitiesResponse> {
        let limit = list_limit(request.limit)?;
        let wanted = checked(request.hints)?;
        let labels = [
            ("name", &request.name),
            ("tag_namespace", &request.tag_namespace),
            ("tag_value", &request.tag_value),
        ];
        for (field, label) in labels {
            label.as_ref().map_or(Ok(()), |label| check_text(field, label, LABEL_CHARS_MAX))?;
        }
        let filter = IdentityFilter {
            name: request.name,
            tag_namespace: request.tag_namespace,
            tag_value: request.tag_value,
            hints: wanted.iter().map(|hint| (hint.kind, hint.value.clone())).collect(),
        };
        let (visible, cursor) = (ctx.visible(), request.cursor);
        let find = ctx.read(move |store| {
            store.graph().identities(&visible, &filter, cursor.as_deref(), limit)
        });
        let page = find.await?;
        let found = |identity| found(&ctx, identity, &wanted);
        let identities: Vec<_> = page.items.into_iter().map(found).collect();
        let count = identities.len() as u64;
        Ok(GraphIdentitiesResponse { identities, count, next_cursor: page.next_cursor })
    }
}

impl Handler<tools::GraphContext> for Native {
    async fn handle(ctx: Context, request: GraphContextRequest) -> Result<GraphContextResponse> {
        context::describe(&ctx, request).await
    }
}

/// Finds an identity by its id: the caller's own, else the only one that it sees.
async fn named(ctx: &Context, field: &str, id: String) -> Result<IdentityRecord> {
    check_text(field, &id, LABEL_CHARS_MAX)?;
    let (visible, owner, wanted) = (ctx.visible(), ctx.principal.id, id.clone());
    let found = ctx.read(move |store| store.graph().identity(&wanted, &owner, &visible)).await?;
    match found {
        NamedIdentity::Known(identity) => Ok(identity),
        NamedIdentity::Unknown => Err(Error::not_found("identity", id)),
        NamedIdentity::Ambiguous => {
            let message = format!(
                "`{id}` is the id of several identities, none of which is yours; bind one of your own"
            );
            Err(Error::new(ErrorKind::Conflict, message))
        }
    }
}

fn checked(hints: Vec<GraphHint>) -> Result<Vec<HintRecord>> {
    if hints.len() > HINTS_MAX {
        let message = format!("there can be at most {HINTS_MAX} hints");
        return Err(Error::invalid_field("hints", message));
    }
    let check = |GraphHint { kind, value, confidence }: GraphHint| {
        check_text("hints", &value, LABEL_CHARS_MAX)?;
        let confidence = confidence.unwrap_or(1.0);
        if !(0.0..=1.0).contains(&confidence) {
            return Err(Error::invalid_field("hints", "`confidence` must be from 0 to 1"));
        }
        Ok(HintRecord { kind, value, confidence })
    };
    hints.into_iter().map(check).collect()
}

fn found(ctx: &Context, identity: IdentityRecord, wanted: &[HintRecord]) -> GraphFoundIdentity {
    let matches = (!wanted.is_empty()).then(|| matches(&identity.hints, wanted));
    GraphFoundIdentity {
        yours: identity.key.owner == ctx.principal.id,
        id: identity.key.id,
        name: identity.name,
        created_at: identity.created_at,
        hints: identity.hints.into_iter().map(hint_info).collect(),
        tags: tags(identity.tags),
        matches,
    }
}

/// Adds up the confidences of the hints that are equal, weighed with those of the request.
fn matches(hints: &[HintRecord], wanted: &[HintRecord]) -> HintMatch {
    let weight = |hint: &HintRecord| {
        let is_same = |it: &&HintRecord| it.kind == hint.kind && it.value == hint.value;
        let asked = wanted.iter().filter(is_same).map(|it| it.confidence);
        hint.confidence * asked.fold(0.0, f64::max)
    };
    let sum: f64 = hints.iter().map(weight).sum();
    if sum >= HIGH_MIN {
        HintMatch::High
    } else if sum >= MEDIUM_MIN {
        HintMatch::Medium
    } else {
        HintMatch::Low
    }
}

fn hint_info(HintRecord { kind, value, confidence }: HintRecord) -> GraphHintInfo {
    GraphHintInfo { kind, value, confidence }
}

fn tags(tags: Vec<(String, String)>) -> Vec<GraphTag> {
    tags.into_iter().map(|(namespace, value)| GraphTag { namespace, value }).collect()
}

#[cfg(test)]
mod tests {
    use ringback_proto::request::HintKind;

    use super::*;

    fn hint(value: &str, confidence: f64) -> HintRecord {
        HintRecord { kind: HintKind::MidiName, value: value.to_owned(), confidence }
    }

    /// Rule: the sum of confidences decides: at least 1 is high, at least 0.5 medium, less low.
    #[test]
    fn a_match_is_as_good_as_the_sum_of_its_confidences() {
        let own = [hint("a", 0.6), hint("b", 0.4), hint("c", 0.3)];
        let asked = |names: &[&str]| -> Vec<_> { names.iter().map(|it| hint(it, 1.0)).collect() };
        assert_eq!(matches(&own, &asked(&["a", "b"])), HintMatch::High);
        assert_eq!(matches(&own, &asked(&["a"])), HintMatch::Medium);
        assert_eq!(matches(&own, &asked(&["c", "unknown"])), HintMatch::Low);
        assert_eq!(matches(&own, &asked(&["a", "a", "a"])), HintMatch::Medium);
        assert_eq!(matches(&own, &[hint("a", 0.5), hint("b", 0.5)]), HintMatch::Medium);
    }
}
