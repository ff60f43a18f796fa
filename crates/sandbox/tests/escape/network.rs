//! Network access.

use std::net::{TcpListener, UdpSocket};

use crate::bench::{Bench, everywhere};

everywhere! {
    /// Rule: without a network, nothing is reached: not the host's loopback, not the outside, not the
    /// machine below this one.
    nothing_is_reached_by_any_network
}
fn nothing_is_reached_by_any_network(bench: &Bench) {
    let tcp = TcpListener::bind("127.0.0.1:0").unwrap();
    let udp = UdpSocket::bind("127.0.0.1:0").unwrap();
    let (tcp_port, udp_port) = (tcp.local_addr().unwrap().port(), udp.local_addr().unwrap().port());
    let script = format!(
        "
import socket
def tries(family, kind, address):
    try:
        s = socket.socket(family, kind)
        s.settimeout(5)
        s.connect(address)
        if kind == socket.SOCK_DGRAM:
            s.send(b'x')
        print('reached', address)
    except OSError as error:
        print(error.strerror)
tries(socket.AF_INET, socket.SOCK_STREAM, ('127.0.0.1', {tcp_port}))
tries(socket.AF_INET, socket.SOCK_STREAM, ('93.184.216.34', 80))
tries(socket.AF_INET, socket.SOCK_DGRAM, ('8.8.8.8', 53))
tries(socket.AF_INET6, socket.SOCK_STREAM, ('2606:4700:4700::1111', 443))
tries(socket.AF_VSOCK, socket.SOCK_STREAM, (2, 1024))
tries(socket.AF_PACKET, socket.SOCK_RAW, ('lo', 0))
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.sendto(b'x', ('127.0.0.1', {udp_port}))
try:
    print(socket.getaddrinfo('example.com', 80))
except OSError as error:
    print('no name')
print([name for _, name in socket.if_nameindex()])"
    );
    let unreachable = "Network is unreachable\n".repeat(2);
    let ran = bench.python(&[], &script);
    let no_ipv6 = ran.out.replace("Cannot assign requested address", "Network is unreachable");
    assert_eq!(
        no_ipv6.trim(),
        format!(
            "Connection refused\n{unreachable}Network is unreachable\nOperation not permitted\n\
             Operation not permitted\nno name\n['lo']"
        ),
        "{ran:?}"
    );
    udp.set_nonblocking(true).unwrap();
    assert!(udp.recv(&mut [0; 8]).is_err(), "a packet came out of the sandbox");
}
