//! How many datagrams the kernel has dropped because the server did not take them from a socket's queue.

use std::net::UdpSocket;

/// The datagrams that this socket's queue had no room for, or whose checksum was wrong; 0 where the system does not
/// say.
#[cfg(target_os = "linux")]
#[expect(unsafe_code, reason = "no safe interface offers SO_MEMINFO")]
pub(super) fn of(socket: &UdpSocket) -> u64 {
    use std::os::fd::AsRawFd;
    // `SK_MEMINFO_DROPS` of linux/sock_diag.h is the last of nine numbers. Unlike SO_RXQ_OVFL, the option costs
    // nothing until somebody asks.
    const DROPS: usize = 8;
    let mut info = [0_u32; DROPS + 1];
    let mut length = size_of_val(&info) as libc::socklen_t;
    // SAFETY: the descriptor is open as long as `socket` is borrowed. The kernel writes at most `length` bytes to
    // `info`, which has as many and is valid for every value, and the new length to `length`.
    let done = unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_MEMINFO,
            info.as_mut_ptr().cast(),
            &raw mut length,
        )
    };
    if done == 0 { info[DROPS].into() } else { 0 }
}

/// The system does not say.
#[cfg(not(target_os = "linux"))]
pub(super) fn of(_: &UdpSocket) -> u64 {
    0
}

#[cfg(target_os = "linux")]
#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_finds_no_room_in_the_queue_of_a_socket_is_counted() {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        let other = UdpSocket::bind("127.0.0.1:0").unwrap();
        assert_eq!(of(&socket), 0);
        // The queue of a socket holds a few hundred kilobytes.
        let all = 4000;
        for _ in 0..all {
            other.send_to(&[0; 1000], socket.local_addr().unwrap()).unwrap();
        }
        socket.set_nonblocking(true).unwrap();
        let mut buffer = [0; 1000];
        let taken = std::iter::from_fn(|| socket.recv(&mut buffer).ok()).count() as u64;
        assert!(taken < all, "{taken}");
        assert_eq!(of(&socket), all - taken);
    }
}
