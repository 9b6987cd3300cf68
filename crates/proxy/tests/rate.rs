//! The ground side sends at a rate: how many bytes in which time, and who waits for whom.

mod support;

use std::time::Instant;
use support::link::*;
use support::origin::{answering, with_length};
use support::{Folder, Running, free_port, pep_run, skips};

const BIT_PER_S: u64 = 1_000_000;
/// Bytes of the head of a data frame before those of the answer.
const OFFSET: usize = 5;

/// The ground side at the rate, before an origin whose answers have as many bytes as their path says.
fn at_the_rate(schedule: &str) -> (Folder, Running, Link, u16) {
    let serve = answering(|request| {
        let path = request.split(' ').nth(1).unwrap();
        with_length(&vec![0; path[1..].parse().unwrap()])
    });
    ground(serve, |run| {
        run["proxies"][0]["rate_bit_per_s"] = BIT_PER_S.into();
        run["proxies"][0]["schedule"] = schedule.into();
    })
}

#[test]
fn all_answers_together_take_no_more_than_the_rate_and_arrive() {
    if skips() {
        return;
    }
    for schedule in ["arrival", "fair"] {
        let (_folder, _running, mut link, port) = at_the_rate(schedule);
        let began = Instant::now();
        for stream in [1, 3, 5] {
            link.send(REQUEST, 0, stream, &request(port, "/40000"));
        }
        let (mut came, mut ended) = (0, 0);
        while ended < 3 {
            let frame = link.next_of(DATA);
            came += frame.payload.len() - OFFSET;
            ended += usize::from(frame.flags == WHOLE);
        }
        assert!(came > 120_000);
        // The last frame goes whole when its first byte may go.
        let most = began.elapsed().as_secs_f64() * BIT_PER_S as f64 / 8.0 + 16_384.0;
        assert!((came as f64) < most, "{schedule}: {came} bytes, accepted: {most}");
    }
}

#[test]
fn a_user_who_comes_later_waits_for_what_was_sent_and_then_takes_turns() {
    if skips() {
        return;
    }
    const FIRST: usize = 100_000;
    const SECOND: usize = 15_000;
    let (_folder, _running, mut link, port) = at_the_rate("fair");
    link.send(REQUEST, 0, 1, &request(port, &format!("/{FIRST}")));
    link.next_of(DATA);
    let mut other = request(port, &format!("/{SECOND}"));
    other[USER_AT] = 2;
    link.send(REQUEST, 0, 3, &other);
    let mut of_first = 0;
    loop {
        let frame = link.next_of(DATA);
        match (frame.stream, frame.flags) {
            (1, _) => of_first += frame.payload.len() - OFFSET,
            (_, WHOLE) => break,
            _ => {}
        }
    }
    // As much as the second user, and what goes in 200 ms while the request is on its way and the origin answers.
    assert!(of_first < SECOND + 25_000, "{of_first} of {FIRST} bytes before the other user's {SECOND}");
}

#[test]
fn a_rate_of_zero_is_refused() {
    let folder = Folder::new();
    let mut run = pep_run(&folder, &[("http", "a.test")], free_port(), free_port());
    run["proxies"][0]["rate_bit_per_s"] = 0.into();
    let (code, message) = folder.refused("pep", &run, "ground");
    assert!(code == 2 && message.contains("nonzero"), "{code}: {message}");
}
