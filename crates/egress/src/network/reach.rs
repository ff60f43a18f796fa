//! From a requested place to a connection, or to the reason why it failed.

use std::io;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::sync::Arc;

use ringback_broker::network::{AddressOwner, permits, permits_address};
use ringback_proto::network::{Destination, Host, HostName, NetworkPolicy};
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::door::Door;
use super::passage::{Account, Passage, Stream};
use super::refusal::Refusal;

/// The number of addresses to try for one name.
const ADDRESSES_MAX: usize = 8;

impl Door {
    /// Connects to a place if it is allowed.
    pub(super) async fn reach(
        self: &Arc<Self>,
        to: Destination,
    ) -> Result<(Stream, Passage), Refusal> {
        let mut account = Account::new(Arc::clone(self), &to);
        match self.connected(&to).await {
            Ok((stream, address)) => Ok(Passage::new(account, to, address, stream)),
            Err(refusal) => {
                account.outcome = refusal.outcome();
                Err(refusal)
            }
        }
    }

    async fn connected(&self, to: &Destination) -> Result<(TcpStream, IpAddr), Refusal> {
        let policy = Arc::clone(&self.policy.borrow());
        // Before the lookup: a lookup itself can leak information.
        permits(&policy, to)?;
        let found = match &to.host {
            Host::Address(address) => vec![*address],
            Host::Name(name) => self.resolved(name).await?,
        };
        let addresses = allowed(&policy, to, found)?;
        let connecting = timeout(self.config.connect_timeout, connect(&addresses, to.port));
        let connected = connecting.await.map_err(|_| Refusal::Late)?;
        connected.map_err(|error| {
            tracing::debug!(session = %self.session, %error, "cannot reach a host");
            Refusal::Unreachable
        })
    }

    async fn resolved(&self, name: &HostName) -> Result<Vec<IpAddr>, Refusal> {
        let resolving = timeout(self.config.resolve_timeout, self.resolver.resolve(name));
        match resolving.await {
            Ok(Ok(found)) if !found.is_empty() => Ok(found),
            Ok(Ok(_) | Err(_)) | Err(_) => Err(Refusal::Unresolved),
        }
    }
}

/// Whether an address belongs to this machine: only those can be bound to. Where the system lets
/// programs bind to others, no address is public, and all must be listed.
pub(super) fn whose(address: IpAddr) -> AddressOwner {
    match UdpSocket::bind((address, 0)) {
        Ok(_) => AddressOwner::Ours,
        Err(_) => AddressOwner::Others,
    }
}

/// The addresses that may be connected to.
fn allowed(
    policy: &NetworkPolicy,
    to: &Destination,
    found: Vec<IpAddr>,
) -> Result<Vec<IpAddr>, Refusal> {
    let (mut addresses, mut denied) = (Vec::new(), None);
    for address in found {
        let address = address.to_canonical();
        match permits_address(policy, to, address, whose(address)) {
            Ok(()) => addresses.push(address),
            Err(why) => denied = Some(why),
        }
    }
    addresses.truncate(ADDRESSES_MAX);
    match denied {
        Some(denied) if addresses.is_empty() => Err(denied.into()),
        Some(_) | None => Ok(addresses),
    }
}

/// Connects to the first address that accepts.
async fn connect(addresses: &[IpAddr], port: u16) -> io::Result<(TcpStream, IpAddr)> {
    let mut failed = io::Error::other("no address found");
    for address in addresses {
        let connecting = TcpStream::connect(SocketAddr::new(*address, port)).await;
        match connecting.and_then(|stream| stream.set_nodelay(true).map(|()| stream)) {
            Ok(stream) => return Ok((stream, *address)),
            Err(error) => failed = error,
        }
    }
    Err(failed)
}
