//! Tokens: who a caller is, checked at every request.

use std::collections::HashMap;
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, RwLock};

use ringback_core::Now;
use ringback_core::policy::{self, Visibility};
use ringback_proto::ids::{SessionId, TokenId};
use ringback_proto::principal::{AgentKey, KeyHolder, Principal, PrincipalId};
use ringback_proto::record::{Record, TokenRecord};
use ringback_proto::secret::Secret;
use ringback_proto::{Error, ErrorKind, Result};
use subtle::ConstantTimeEq as _;
use tokio_util::sync::CancellationToken;
use x25519_dalek::{PublicKey, StaticSecret};

use crate::kernel::Entropy;
use crate::sync::{read, write};

/// The prefix of every secret.
pub(crate) const SECRET_PREFIX: &str = "oub_";
/// `last_used_at` is kept to the minute: a write per call would cost more than it is worth.
const LAST_USED_STEP_MS: u64 = 60_000;

/// A proof of identity that an edge keeps for a connection. It grants nothing on its own: the
/// identity is checked again at every request.
#[derive(Clone)]
pub enum Credential {
    /// The daemon's own user, through a socket that only that user can reach.
    Local(Arc<Principal>),
    /// The holder of a token.
    Token(Arc<Token>),
    /// A user's token presented by the agent of a session, as the principal it is in those hands.
    Shown(Arc<Token>, Arc<Principal>),
}

impl Credential {
    /// Returns the credential of the daemon's own user.
    #[must_use]
    pub fn local() -> Self {
        Self::Local(Arc::new(Principal::local()))
    }

    /// Returns the principal now.
    ///
    /// # Errors
    /// `unauthenticated` once the token is revoked or has expired.
    pub fn principal(&self, now: Now) -> Result<&Arc<Principal>> {
        match self {
            Self::Local(principal) => Ok(principal),
            Self::Token(token) => token.check(now).map(|()| &token.principal),
            Self::Shown(token, principal) => token.check(now).map(|()| principal),
        }
    }

    /// Returns which events its principal sees, besides those that everyone may see.
    ///
    /// # Errors
    /// `unauthenticated` once the token is revoked or has expired.
    pub fn sight(&self, now: Now) -> Result<Visibility> {
        self.principal(now).map(|principal| policy::sight(principal))
    }

    /// Returns the id of its principal, valid or not.
    #[must_use]
    pub fn id(&self) -> PrincipalId {
        match self {
            Self::Local(principal) | Self::Shown(_, principal) => principal.id,
            Self::Token(token) => token.principal.id,
        }
    }

    /// Returns the session whose agent holds it, if any.
    pub(crate) fn session(&self) -> Option<SessionId> {
        let principal = match self {
            Self::Local(principal) | Self::Shown(_, principal) => principal,
            Self::Token(token) => &token.principal,
        };
        principal.held_by.map(|held_by| held_by.session)
    }

    /// Returns whether it would be accepted now; this does not count as a use.
    #[must_use]
    pub fn is_valid(&self, now: Now) -> bool {
        match self {
            Self::Local(_) => true,
            Self::Token(token) | Self::Shown(token, _) => token.validity(now).is_ok(),
        }
    }

    /// Resolves when the token ends, so that everything it opened is closed.
    pub async fn ended(&self) {
        match self {
            Self::Local(_) => std::future::pending().await,
            Self::Token(token) | Self::Shown(token, _) => token.ended.cancelled().await,
        }
    }
}

impl fmt::Debug for Credential {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Credential({})", self.id())
    }
}

/// A token in memory.
#[derive(Debug)]
pub struct Token {
    record: TokenRecord,
    principal: Arc<Principal>,
    /// 0 if it is not revoked.
    revoked_at: AtomicU64,
    last_used_at: AtomicU64,
    last_used_stored: AtomicU64,
    /// Whether it was ever seen expired: setting the clock back does not revive it.
    is_expired: AtomicBool,
    /// Whether the store knows that.
    is_expiry_stored: AtomicBool,
    ended: CancellationToken,
    /// For a session key: the tokens it derives from. It ends when any of them does.
    behind: Vec<Arc<Self>>,
}

/// A session key to be created.
#[derive(Debug)]
pub(crate) struct NewKey {
    pub(crate) record: TokenRecord,
    pub(crate) session: SessionId,
    /// The user's token that was passed and that it acts as; absent if the key was created for the
    /// session.
    pub(crate) passed: Option<Arc<Token>>,
    /// Other tokens it ends with: the one that started the session, and the key of the agent that
    /// did.
    pub(crate) behind: Vec<Arc<Token>>,
}

impl Token {
    pub(crate) const fn principal(&self) -> &Arc<Principal> {
        &self.principal
    }

    fn new(record: TokenRecord) -> Self {
        let key = AgentKey::Made;
        let principal = Principal {
            id: PrincipalId::Token(record.id),
            level: record.level,
            target: record.target.clone(),
            held_by: record.session.map(|session| KeyHolder { session, key }),
        };
        Self::acting_as(principal, record, Vec::new())
    }

    pub(crate) fn key(new: NewKey) -> Self {
        let NewKey { record, session, passed, mut behind } = new;
        let (id, key) = match &passed {
            Some(token) => (token.principal.id, AgentKey::Passed),
            None => (PrincipalId::Token(record.id), AgentKey::Made),
        };
        let (level, target) = (record.level, record.target.clone());
        let held_by = Some(KeyHolder { session, key });
        behind.extend(passed);
        Self::acting_as(Principal { id, level, target, held_by }, record, behind)
    }

    fn acting_as(principal: Principal, record: TokenRecord, behind: Vec<Arc<Self>>) -> Self {
        let last_used_at = record.last_used_at.unwrap_or(0);
        // How an expiry is stored: see `expiry_to_store`.
        let is_expired = record.revoked_at.is_some() && record.revoked_at == record.expires_at;
        let revoked_at = record.revoked_at.filter(|_| !is_expired).unwrap_or(0);
        Self {
            principal: Arc::new(principal),
            revoked_at: AtomicU64::new(revoked_at),
            last_used_at: AtomicU64::new(last_used_at),
            last_used_stored: AtomicU64::new(last_used_at),
            is_expired: AtomicBool::new(is_expired),
            is_expiry_stored: AtomicBool::new(is_expired),
            ended: CancellationToken::new(),
            behind,
            record,
        }
    }

    fn check(&self, now: Now) -> Result<()> {
        self.validity(now)?;
        self.last_used_at.store(now.unix - now.unix % LAST_USED_STEP_MS, Ordering::Relaxed);
        Ok(())
    }

    fn validity(&self, now: Now) -> Result<()> {
        if self.revoked_at.load(Ordering::Acquire) != 0 {
            return Err(unauthenticated("the token was revoked"));
        }
        if self.has_expired(now) {
            return Err(unauthenticated("the token has expired"));
        }
        self.behind.iter().try_for_each(|token| token.validity(now))
    }

    /// Returns whether it has expired, now or at any time before.
    fn has_expired(&self, now: Now) -> bool {
        let Some(at) = self.record.expires_at else { return false };
        if at <= now.unix {
            self.is_expired.store(true, Ordering::Relaxed);
            return true;
        }
        self.is_expired.load(Ordering::Relaxed)
    }

    /// Returns an expiry for the store: a revocation at the moment of expiry, so that setting the
    /// clock back while the daemon is down does not revive the token.
    fn expiry_to_store(&self) -> Option<Record> {
        let at = self.record.expires_at.filter(|_| self.is_expired.load(Ordering::Relaxed))?;
        let is_stored = self.is_expiry_stored.swap(true, Ordering::Relaxed);
        (!is_stored).then_some(Record::TokenRevoked { id: self.record.id, at })
    }

    fn use_to_store(&self) -> Option<Record> {
        let at = self.last_used_at.load(Ordering::Relaxed);
        let stored = self.last_used_stored.swap(at, Ordering::Relaxed);
        (at != stored).then_some(Record::TokenUsed { id: self.record.id, at })
    }

    fn snapshot(&self) -> TokenRecord {
        let stored = |at: &AtomicU64| Some(at.load(Ordering::Acquire)).filter(|at| *at != 0);
        TokenRecord {
            revoked_at: stored(&self.revoked_at),
            last_used_at: stored(&self.last_used_at),
            ..self.record.clone()
        }
    }
}

/// All tokens. Few enough to keep in memory, so that a check needs no read of the store.
#[derive(Debug, Default)]
pub(crate) struct Tokens {
    table: RwLock<TokenTable>,
}

#[derive(Debug, Default)]
struct TokenTable {
    by_hash: HashMap<[u8; 32], Arc<Token>>,
    by_id: HashMap<TokenId, Arc<Token>>,
}

impl TokenTable {
    fn insert(&mut self, token: Arc<Token>) {
        self.by_id.insert(token.record.id, Arc::clone(&token));
        self.by_hash.insert(token.record.secret_hash, token);
    }
}

impl Tokens {
    pub(crate) fn load(records: Vec<TokenRecord>) -> Self {
        let is_over =
            |record: &TokenRecord| record.session.is_some() && record.revoked_at.is_some();
        let mut table = TokenTable::default();
        for record in records.into_iter().filter(|record| !is_over(record)) {
            table.insert(Arc::new(Token::new(record)));
        }
        Self { table: RwLock::new(table) }
    }

    /// Returns the token for a secret.
    pub(crate) fn authenticate(&self, secret: &str, now: Now) -> Result<Credential> {
        let token = self.known(secret, now)?;
        if token.record.session.is_some() {
            return Err(unauthenticated("this key works only inside its session"));
        }
        Ok(Credential::Token(token))
    }

    /// Returns a user's token for a secret, to be passed to an agent.
    pub(crate) fn passed(&self, secret: &str, now: Now) -> Result<Arc<Token>> {
        match self.authenticate(secret, now)? {
            Credential::Token(token) | Credential::Shown(token, _) => Ok(token),
            Credential::Local(_) => Err(unauthenticated("this is not a token")),
        }
    }

    /// Returns the token for a secret that is presented inside a session: a user's token or that
    /// session's own key. Either way, an agent holds it.
    pub(crate) fn authenticate_in(
        &self,
        session: SessionId,
        secret: &str,
        now: Now,
    ) -> Result<Credential> {
        let token = self.known(secret, now)?;
        match token.record.session {
            Some(own) if own != session => {
                Err(unauthenticated("this key works only inside its session"))
            }
            Some(_) => Ok(Credential::Token(token)),
            None => {
                let held_by = Some(KeyHolder { session, key: AgentKey::Passed });
                let principal = Principal { held_by, ..Principal::clone(&token.principal) };
                Ok(Credential::Shown(token, Arc::new(principal)))
            }
        }
    }

    fn known(&self, secret: &str, now: Now) -> Result<Arc<Token>> {
        let hash = secret_hash(secret);
        let found = self.read(|tokens| tokens.by_hash.get(&hash).cloned());
        // The map was searched by a hash of the secret, so its timing reveals nothing about it; the
        // comparison takes constant time anyway.
        let token = found
            .filter(|token| bool::from(token.record.secret_hash.ct_eq(&hash)))
            .ok_or_else(|| unauthenticated("unknown token"))?;
        token.check(now)?;
        Ok(token)
    }

    /// Returns the token whose bytes are the secret key for this public key. A client that presents
    /// the public key in a handshake has proved that it has them.
    pub(crate) fn authenticate_key(&self, public_key: &[u8; 32], now: Now) -> Result<Credential> {
        let found = self.read(|tokens| {
            let is_it = |token: &&Arc<Token>| {
                token.record.public_key == *public_key && token.record.session.is_none()
            };
            tokens.by_id.values().find(is_it).cloned()
        });
        let token = found.ok_or_else(|| unauthenticated("unknown token"))?;
        token.check(now)?;
        Ok(Credential::Token(token))
    }

    pub(crate) fn insert(&self, record: TokenRecord) {
        self.insert_token(Arc::new(Token::new(record)));
    }

    pub(crate) fn insert_token(&self, token: Arc<Token>) {
        write(&self.table).insert(token);
    }

    /// Forgets a key that ended with its session. Remaining handles to it know that it ended.
    pub(crate) fn forget(&self, id: TokenId) {
        let mut table = write(&self.table);
        if let Some(token) = table.by_id.remove(&id) {
            table.by_hash.remove(&token.record.secret_hash);
        }
    }

    /// Returns the credential of a principal that was authenticated before.
    pub(crate) fn credential(&self, id: PrincipalId) -> Option<Credential> {
        match id {
            PrincipalId::Local => None,
            PrincipalId::Token(token_id) => self.find(token_id).map(Credential::Token),
        }
    }

    pub(crate) fn find(&self, id: TokenId) -> Option<Arc<Token>> {
        self.read(|tokens| tokens.by_id.get(&id).cloned())
    }

    /// Returns a principal by its id, as it is now: for work that outlived the connection that
    /// started it.
    pub(crate) fn principal(&self, id: PrincipalId, now: Now) -> Result<Arc<Principal>> {
        match id {
            PrincipalId::Local => Ok(Arc::new(Principal::local())),
            PrincipalId::Token(token_id) => {
                let token = self
                    .find(token_id)
                    .ok_or_else(|| unauthenticated("the token no longer exists"))?;
                token.check(now).map(|()| Arc::clone(&token.principal))
            }
        }
    }

    /// Ends a token now: the next check of it fails, and so do checks of the keys derived from it;
    /// waiters on any of them are woken.
    pub(crate) fn revoke(&self, token: &Token, now: Now) {
        token.revoked_at.store(now.unix.max(1), Ordering::Release);
        token.ended.cancel();
        self.end_invalid(now);
    }

    pub(crate) fn list(&self) -> Vec<TokenRecord> {
        let mut records: Vec<_> =
            self.read(|tokens| tokens.by_id.values().map(|token| token.snapshot()).collect());
        records.sort_by_key(|record| (record.created_at, record.id));
        records
    }

    /// Wakes the waiters of tokens that are no longer valid.
    pub(crate) fn end_invalid(&self, now: Now) {
        let invalid = |token: &&Arc<Token>| token.validity(now).is_err();
        self.read(|tokens| {
            tokens.by_id.values().filter(invalid).for_each(|token| token.ended.cancel())
        });
    }

    /// Returns whether a principal's token is no longer valid.
    pub(crate) fn is_over(&self, id: PrincipalId, now: Now) -> bool {
        match id {
            PrincipalId::Local => false,
            PrincipalId::Token(id) => self.find(id).is_none_or(|it| it.validity(now).is_err()),
        }
    }

    /// Returns uses and expiries of tokens that the store does not know yet.
    pub(crate) fn changes_to_store(&self) -> Vec<Record> {
        let changes = |token: &Arc<Token>| [token.expiry_to_store(), token.use_to_store()];
        self.read(|tokens| tokens.by_id.values().flat_map(changes).flatten().collect())
    }

    fn read<T>(&self, look: impl FnOnce(&TokenTable) -> T) -> T {
        look(&read(&self.table))
    }
}

/// Returns a new secret, the prefix and 64 hex digits, and the public key for its bytes.
pub(crate) fn new_secret(entropy: &Entropy) -> (Secret, [u8; 32]) {
    let bytes = entropy.bytes();
    let digits = blake3::Hash::from_bytes(bytes).to_hex();
    let public_key = PublicKey::from(&StaticSecret::from(bytes));
    (Secret::new(format!("{SECRET_PREFIX}{digits}")), public_key.to_bytes())
}

/// Returns the stored form of a secret. A secret has 256 random bits, so a plain fast hash is
/// enough.
pub(crate) fn secret_hash(secret: &str) -> [u8; 32] {
    *blake3::hash(secret.as_bytes()).as_bytes()
}

fn unauthenticated(message: &str) -> Error {
    Error::new(ErrorKind::Unauthenticated, message)
}

#[cfg(test)]
mod tests {
    use ringback_proto::principal::{Level, Target};
    use ringback_proto::record::UnixMs;

    use super::*;

    const SECRET: &str = "oub_test";

    fn tokens(expires_at: Option<UnixMs>) -> Tokens {
        Tokens::load(vec![record(expires_at)])
    }

    fn record(expires_at: Option<UnixMs>) -> TokenRecord {
        TokenRecord {
            id: TokenId::from_random([1; 16]),
            name: "test".to_owned(),
            secret_hash: secret_hash(SECRET),
            public_key: [1; 32],
            level: Level::Read,
            target: Target::Everything,
            created_at: 1,
            expires_at,
            last_used_at: None,
            revoked_at: None,
            session: None,
        }
    }

    const fn at(unix: UnixMs) -> Now {
        Now { mono: 0, unix }
    }

    /// Rule: setting the clock back does not revive an expired token.
    #[test]
    fn an_expired_token_stays_expired_whatever_the_clock_does() {
        // Seen expired when it was used.
        let used = tokens(Some(100));
        let credential = used.authenticate(SECRET, at(99)).unwrap();
        assert!(used.authenticate(SECRET, at(100)).is_err());
        assert!(used.authenticate(SECRET, at(50)).is_err());
        assert!(!credential.is_valid(at(1)) && credential.principal(at(1)).is_err());
        // Seen expired by the sweep alone.
        let swept = tokens(Some(100));
        swept.end_invalid(at(150));
        assert!(swept.authenticate(SECRET, at(50)).is_err());
        let lasting = tokens(None);
        lasting.end_invalid(at(u64::MAX));
        lasting.authenticate(SECRET, at(1)).unwrap();
    }

    /// Rule: setting the clock back while the daemon is down does not revive one either.
    #[test]
    fn an_expired_token_stays_expired_after_a_restart() {
        let tokens = tokens(Some(100));
        assert!(tokens.changes_to_store().is_empty());
        tokens.end_invalid(at(150));
        let changes = tokens.changes_to_store();
        let [Record::TokenRevoked { id, at: 100 }] = changes[..] else { panic!("{changes:?}") };
        assert_eq!(id, record(None).id);
        assert!(tokens.changes_to_store().is_empty(), "once");

        let stored = TokenRecord { revoked_at: Some(100), ..record(Some(100)) };
        let restarted = Tokens::load(vec![stored]);
        let error = restarted.authenticate(SECRET, at(50)).unwrap_err();
        assert_eq!(error.message(), "the token has expired");
        assert!(restarted.changes_to_store().is_empty());
        assert_eq!(restarted.list()[0].revoked_at, None, "it was not revoked");
    }
}
