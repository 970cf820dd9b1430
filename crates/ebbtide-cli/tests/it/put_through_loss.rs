//! `ebbtide put` of a file through a path that loses a tenth of all datagrams in each direction.

use crate::common::{Serving, command};
use rand_chacha::ChaCha8Rng;
use rand_core::{Rng, SeedableRng};
use std::collections::HashMap;
use std::net::{SocketAddr, UdpSocket};
use std::process::Stdio;
use std::sync::Arc;
use std::thread;

/// Datagrams that are lost of a hundred.
const LOST: u32 = 10;

/// Carries datagrams to `server` and back as long as the test runs.
fn relay(server: SocketAddr, seed: u64) -> SocketAddr {
    let front = Arc::new(UdpSocket::bind("127.0.0.1:0").unwrap());
    let address = front.local_addr().unwrap();
    thread::spawn(move || {
        let mut luck = ChaCha8Rng::seed_from_u64(seed);
        let mut backs: HashMap<SocketAddr, Arc<UdpSocket>> = HashMap::new();
        let mut buf = [0; 2048];
        while let Ok((len, from)) = front.recv_from(&mut buf) {
            let front = &front;
            let back = backs.entry(from).or_insert_with(|| {
                let back = Arc::new(UdpSocket::bind("127.0.0.1:0").unwrap());
                back.connect(server).unwrap();
                let (front, answers) = (front.clone(), back.clone());
                let mut luck = ChaCha8Rng::seed_from_u64(seed ^ u64::from(from.port()) << 8);
                thread::spawn(move || {
                    let mut buf = [0; 2048];
                    while let Ok(len) = answers.recv(&mut buf) {
                        if luck.next_u32() % 100 >= LOST {
                            let _ = front.send_to(&buf[..len], from);
                        }
                    }
                });
                back
            });
            if luck.next_u32() % 100 >= LOST {
                let _ = back.send(&buf[..len]);
            }
        }
    });
    address
}

/// So many files of so many bytes, `at_once` of them at a time; each is there whole afterwards.
fn put(files: usize, bytes: usize, at_once: usize) {
    let folder = tempfile::tempdir().unwrap();
    let target = folder.path().join("there");
    std::fs::create_dir(&target).unwrap();
    let target = target.to_str().unwrap();
    let server = Serving::start(&["--dir", target, "--writable"]);
    let through = relay(server.address.parse().unwrap(), 42);
    let mut wrong = Vec::new();
    for first in (0..files).step_by(at_once) {
        let puts: Vec<_> = (first..files.min(first + at_once))
            .map(|number| {
                let mut luck = ChaCha8Rng::seed_from_u64(number as u64);
                let mut body = vec![0; bytes];
                luck.fill_bytes(&mut body);
                let file = folder.path().join(format!("{number}"));
                std::fs::write(&file, &body).unwrap();
                let uri = format!("coap://{through}/{number}");
                let put = command(&["put", "-f", file.to_str().unwrap(), &uri])
                    .stdout(Stdio::null())
                    .stderr(Stdio::piped())
                    .spawn()
                    .unwrap();
                (number, body, put)
            })
            .collect();
        for (number, body, put) in puts {
            let ended = put.wait_with_output().unwrap();
            let there = std::fs::read(format!("{target}/{number}")).unwrap_or_default();
            if !ended.status.success() || there != body {
                let said = String::from_utf8_lossy(&ended.stderr).into_owned();
                wrong.push((number, ended.status.code(), there.len(), said));
            }
        }
    }
    println!("{} of {files} files arrived whole", files - wrong.len());
    assert!(wrong.is_empty(), "{wrong:?}");
}

#[test]
fn a_dozen_files_arrive_whole_through_a_tenth_of_loss() {
    put(12, 20_000, 12);
}

#[test]
#[ignore = "minutes: a hundred files of a megabyte"]
fn a_hundred_files_of_a_megabyte_arrive_whole_through_a_tenth_of_loss() {
    put(100, 1_000_000, 25);
}
