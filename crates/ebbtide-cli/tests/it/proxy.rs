//! `ebbtide proxy`: what it needs, and a path that stands for a server.
#![cfg(target_os = "linux")]

use crate::common::{Serving, command, refuse, succeed};
use std::io::{BufRead, BufReader};
use std::process::Stdio;

#[test]
fn a_proxy_that_may_reach_nothing_does_not_start() {
    refuse(&["proxy"], &["--allow"]);
    refuse(&["proxy", "--allow", "10.0.0.1/8"], &["10.0.0.1/8", "such as 10.0.0.0/8"]);
    refuse(&["proxy", "--backend", "floor=coap://192.0.2.1/"], &["/floor/2=coap://"]);
    refuse(&["proxy", "--allow", "10.0.0.0/8", "--cell", "10.0.0.0/8=0"], &["'0'", "such as 16"]);
}

#[test]
fn a_path_of_the_proxy_stands_for_a_server() {
    let server = Serving::start(&[]);
    let backend = format!("/far=coap://{}/", server.address);
    let mut proxy = command(&["proxy", "--bind", "127.0.0.1:0", "--backend", &backend]);
    let mut proxy = proxy.stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(proxy.stdout.take().unwrap()).lines();
    let line = lines.next().unwrap().unwrap();
    let address = line.strip_prefix("proxy at ").unwrap();
    let far = succeed(&["get", &format!("{address}/far/test")]);
    assert_eq!(far, succeed(&["get", &server.uri("/test")]));
    proxy.kill().unwrap();
    proxy.wait().unwrap();
}
