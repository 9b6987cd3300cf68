//! What users get: the scheduler drains its answers over one link, a byte a tick.

use proptest::prelude::*;
use std::collections::BTreeMap;
use std::num::NonZeroU64;
use wirepaint_http_model::Priority;
use wirepaint_pep_model::{Grant, PepClass, PepSchedule, Policy, SMALL_FRAME, Scheduler, Wanted};

fn policy(schedule: PepSchedule, connections: usize) -> Policy {
    Policy { schedule, classes: Vec::new(), connections, multiplexed: true, rate_bit_per_s: None }
}

fn asked(text: &str) -> Wanted {
    Wanted::Asked(Priority::parse(text))
}

/// Jain's index: 1 if all are equal, 1/n if one has everything.
fn jain(values: &[f64]) -> f64 {
    let (sum, squares) = values.iter().fold((0.0, 0.0), |(sum, squares), v| (sum + v, squares + v * v));
    sum * sum / (values.len() as f64 * squares)
}

/// Every user asks for the same answers, one user after another; when each user's last byte has gone.
fn page_load_times(schedule: PepSchedule, users: u32, sizes: &[u64]) -> Vec<f64> {
    let mut scheduler = Scheduler::new(policy(schedule, 8));
    let mut owners = BTreeMap::new();
    for user in 0..users {
        for (number, &size) in sizes.iter().enumerate() {
            let answer = user * sizes.len() as u32 + number as u32;
            owners.insert(answer, user);
            scheduler.add(answer, user, 0, asked("u=5, i"));
            scheduler.offer(answer, size);
            scheduler.finish(answer);
        }
    }
    let (mut now, mut ends) = (0, vec![0.0; users as usize]);
    while let Some(Grant { answer, bytes, last, .. }) = scheduler.pick(0, |_| true) {
        now += bytes;
        if last {
            ends[owners[&answer] as usize] = now as f64;
        }
    }
    assert_eq!(now, u64::from(users) * sizes.iter().sum::<u64>(), "all bytes were sent");
    ends
}

proptest! {
    #[test]
    fn equal_users_are_served_equally_by_the_fair_order(
        users in 2u32..=16,
        sizes in prop::collection::vec(6_000u64..16_000, 1..=30),
    ) {
        let index = jain(&page_load_times(PepSchedule::Fair, users, &sizes));
        prop_assert!(index >= 0.98, "{index}");
    }

    #[test]
    fn the_papers_order_serves_the_first_user_better(
        users in 4u32..=16,
        sizes in prop::collection::vec(6_000u64..16_000, 8..=30),
    ) {
        let times = page_load_times(PepSchedule::Arrival, users, &sizes);
        prop_assert!(jain(&times) < 0.95, "{}", jain(&times));
        prop_assert!(times[0] < times[users as usize - 1] / 1.5);
    }

    #[test]
    fn whatever_happens_every_offered_byte_goes_out_once_and_in_order_of_offers(
        fair: bool,
        multiplexed: bool,
        connections in 1usize..4,
        steps in prop::collection::vec((0u32..12, 0u64..30_000, 0usize..7, 0u8..8), 1..200),
    ) {
        let schedule = if fair { PepSchedule::Fair } else { PepSchedule::Arrival };
        let classes = vec![PepClass { dscp: 10, share: 70.0 }, PepClass { dscp: 12, share: 30.0 }];
        let mut scheduler = Scheduler::new(Policy { schedule, classes, connections, multiplexed, rate_bit_per_s: None });
        // Of each live answer: offered and sent bytes, whether it was finished.
        let mut live: BTreeMap<u32, (u64, u64, bool)> = BTreeMap::new();
        let take = |scheduler: &mut Scheduler, live: &mut BTreeMap<u32, (u64, u64, bool)>, full: usize| {
            let Some(grant) = scheduler.pick(0, |connection| connection != full) else { return false };
            assert_ne!(grant.connection, full);
            assert_eq!(grant.connection / connections, (grant.answer % 2) as usize, "the class's own connection");
            let (offered, sent, finished) = live.get_mut(&grant.answer).unwrap();
            *sent += grant.bytes;
            assert!(sent <= offered);
            assert_eq!(grant.last, *finished && sent == offered);
            if grant.last {
                live.remove(&grant.answer);
            }
            true
        };
        for (answer, bytes, step, urgency) in steps {
            let wanted = match urgency {
                0 => Wanted::Ahead,
                urgency => Wanted::Asked(Priority { urgency, incremental: answer > 6 }),
            };
            match (step, live.get_mut(&answer)) {
                (0, None) => {
                    scheduler.add(answer, answer / 3, (answer % 2) as usize, wanted);
                    live.insert(answer, (0, 0, false));
                }
                (1 | 2, Some((offered, _, false))) => {
                    *offered += bytes;
                    scheduler.offer(answer, bytes);
                }
                (3, Some((_, _, finished))) => {
                    *finished = true;
                    scheduler.finish(answer);
                }
                (4, _) => scheduler.want(answer, wanted),
                (5, Some(_)) if bytes < 3_000 => {
                    live.remove(&answer);
                    scheduler.remove(answer);
                }
                _ => { take(&mut scheduler, &mut live, urgency as usize); }
            }
        }
        while take(&mut scheduler, &mut live, usize::MAX) {}
        for (answer, (offered, sent, finished)) in live {
            prop_assert!(offered == sent && !finished, "answer {answer}: {sent} of {offered} bytes");
        }
    }
}

#[test]
fn a_user_with_one_answer_does_not_wait_for_one_with_thirty() {
    let mut scheduler = Scheduler::new(policy(PepSchedule::Fair, 4));
    for answer in 0..30 {
        scheduler.add(answer, 1, 0, asked("u=3"));
        scheduler.offer(answer, 10_000);
        scheduler.finish(answer);
    }
    scheduler.add(99, 2, 0, asked("u=3"));
    scheduler.offer(99, 10_000);
    scheduler.finish(99);
    let mut before = 0;
    loop {
        let grant = scheduler.pick(0, |_| true).unwrap();
        before += grant.bytes;
        if grant.answer == 99 && grant.last {
            break;
        }
    }
    assert!((19_000..=21_400).contains(&before), "{before} bytes: half of them were the other user's");
}

#[test]
fn a_users_answers_go_by_priority_and_what_nobody_asked_for_goes_last() {
    let mut scheduler = Scheduler::new(policy(PepSchedule::Fair, 1));
    let wanted = [Wanted::Ahead, asked("u=4"), asked("u=0"), Wanted::Ahead];
    for (answer, wanted) in wanted.into_iter().enumerate() {
        scheduler.add(answer as u32, 1, 0, wanted);
        scheduler.offer(answer as u32, 100);
        scheduler.finish(answer as u32);
    }
    scheduler.want(3, asked("u=2"));
    let order: Vec<u32> =
        std::iter::from_fn(|| scheduler.pick(0, |_| true)).map(|grant| grant.answer).collect();
    assert_eq!(order, [2, 3, 1, 0]);
}

#[test]
fn whole_answers_go_in_order_of_coming_and_connections_by_turns_in_the_papers_order() {
    let multiplexed = false;
    let mut scheduler = Scheduler::new(Policy { multiplexed, ..policy(PepSchedule::Arrival, 2) });
    for answer in 0..4 {
        scheduler.add(answer, answer, 0, asked("u=3"));
        scheduler.offer(answer, 20_000);
        scheduler.finish(answer);
    }
    let all: Vec<_> =
        std::iter::from_fn(|| scheduler.pick(0, |_| true)).map(|g| (g.connection, g.answer)).collect();
    assert_eq!(all, [(0, 0), (1, 1), (0, 0), (1, 1), (0, 2), (1, 3), (0, 2), (1, 3)]);
}

/// Two classes of 75 and 25 per cent, each with so many bytes, and one connection each.
fn two_classes(bytes: [u64; 2]) -> Scheduler {
    let classes = vec![PepClass { dscp: 46, share: 75.0 }, PepClass { dscp: 0, share: 25.0 }];
    let mut scheduler = Scheduler::new(Policy { classes, ..policy(PepSchedule::Fair, 1) });
    for (class, bytes) in bytes.into_iter().enumerate() {
        scheduler.add(class as u32, class as u32, class, asked("u=3"));
        scheduler.offer(class as u32, bytes);
    }
    scheduler
}

fn sent(scheduler: &mut Scheduler, picks: usize, has_room: impl Fn(usize) -> bool) -> [u64; 2] {
    let mut bytes = [0, 0];
    for grant in (0..picks).map_while(|_| scheduler.pick(0, &has_room)) {
        bytes[grant.connection] += grant.bytes;
    }
    bytes
}

#[test]
fn classes_get_their_shares_and_borrow_what_another_leaves() {
    let [gold, bronze] = sent(&mut two_classes([10 << 20, 10 << 20]), 400, |_| true);
    let share = gold as f64 / (gold + bronze) as f64;
    assert!((0.74..0.76).contains(&share), "{share}");
    assert_eq!(sent(&mut two_classes([0, 1 << 20]), 1000, |_| true), [0, 1 << 20]);
}

#[test]
fn a_class_does_not_run_far_ahead_of_one_whose_connection_is_full() {
    let mut scheduler = two_classes([10 << 20, 10 << 20]);
    let [_, bronze] = sent(&mut scheduler, 1000, |connection| connection == 1);
    assert!((65_536..=65_536 + 16_384).contains(&bronze), "{bronze}");
    assert_ne!(sent(&mut scheduler, 1, |_| true)[0], 0, "the class that is owed its share goes first");
}

#[test]
fn nobody_saves_up_turns_while_silent() {
    let mut scheduler = two_classes([0, 10 << 20]);
    sent(&mut scheduler, 100, |_| true);
    scheduler.offer(0, 10 << 20);
    let [gold, bronze] = sent(&mut scheduler, 100, |_| true);
    assert!(bronze > gold / 5, "{gold} and {bronze}");
}

#[test]
fn a_class_that_sent_alone_has_its_share_at_once_after_an_idle_moment() {
    let mut scheduler = two_classes([0, 10 << 20]);
    assert_eq!(sent(&mut scheduler, 1000, |_| true), [0, 10 << 20]);
    scheduler.offer(0, 10 << 20);
    scheduler.offer(1, 10 << 20);
    let [gold, bronze] = sent(&mut scheduler, 40, |_| true);
    let share = gold as f64 / (gold + bronze) as f64;
    assert!((0.72..0.78).contains(&share), "{gold} and {bronze}");
}

#[test]
fn code_points_name_classes_and_unknown_ones_none() {
    let classes = vec![PepClass { dscp: 46, share: 50.0 }, PepClass { dscp: 0, share: 50.0 }];
    let two = Policy { classes, ..policy(PepSchedule::Fair, 3) };
    assert_eq!([two.class_of(46), two.class_of(0), two.class_of(8)], [Some(0), Some(1), None]);
    assert_eq!((two.connection_count(), two.class_of_connection(3)), (6, 1));
    assert_eq!(policy(PepSchedule::Fair, 3).class_of(8), Some(0));
}

/// Sends what fits at a rate until nothing is left; calls `now` and after each grant with the answer and its bytes.
fn sent_at_a_rate(scheduler: &mut Scheduler, mut each: impl FnMut(&mut Scheduler, u64, Grant)) -> u64 {
    let mut now = 0;
    loop {
        while let Some(grant) = scheduler.pick(now, |_| true) {
            each(scheduler, now, grant);
        }
        match scheduler.next() {
            Some(at) => now = at,
            None => return now,
        }
    }
}

fn at_a_rate(schedule: PepSchedule, bit_per_s: u64) -> Scheduler {
    Scheduler::new(Policy { rate_bit_per_s: NonZeroU64::new(bit_per_s), ..policy(schedule, 8) })
}

#[test]
fn a_rate_counts_what_answers_take_of_the_link() {
    for schedule in [PepSchedule::Arrival, PepSchedule::Fair] {
        let mut scheduler = at_a_rate(schedule, 1_000_000);
        scheduler.add(0, 0, 0, asked("u=3"));
        scheduler.offer(0, 1_000_000);
        scheduler.finish(0);
        let end = sent_at_a_rate(&mut scheduler, |_, _, _| ());
        // 1 MB of payload in segments of 1,448 bytes has 4.6 % of headers, and one header of a frame each 1,400 or more.
        assert!((8.3e9..8.6e9).contains(&(end as f64)), "{schedule:?} {end}");
    }
}

#[test]
fn at_the_links_rate_a_user_who_comes_later_waits_for_one_frame() {
    let mut scheduler = at_a_rate(PepSchedule::Fair, 256_000);
    scheduler.add(0, 0, 0, asked("u=3"));
    scheduler.offer(0, 100_000);
    let (mut first, mut second) = (0, 0);
    let mut came = None;
    sent_at_a_rate(&mut scheduler, |scheduler, now, grant| {
        *if grant.answer == 0 { &mut first } else { &mut second } += grant.bytes;
        if now > 200_000_000 && came.is_none() {
            came = Some(first);
            scheduler.add(1, 1, 0, asked("u=3"));
            scheduler.offer(1, 10_000);
        }
        if second == 10_000 {
            scheduler.remove(0);
        }
    });
    let before = came.unwrap();
    assert!((5_000..9_000).contains(&before), "{before} bytes in 200 ms at 256 kbit/s");
    assert!(first - before <= 10_000 + 2 * SMALL_FRAME, "{first} after {before}");
}

#[test]
fn a_rate_is_kept_from_the_slowest_link_to_the_fastest() {
    const BYTES: u64 = 4_000_000;
    for bit_per_s in [1_000, 1_000_000, 100_000_000_000] {
        let mut scheduler = at_a_rate(PepSchedule::Fair, bit_per_s);
        scheduler.add(0, 0, 0, asked("u=3"));
        scheduler.offer(0, BYTES);
        scheduler.finish(0);
        let end = sent_at_a_rate(&mut scheduler, |_, _, _| ());
        let segments = (BYTES * 1_514 / 1_448 * 8) as f64 * 1e9 / bit_per_s as f64;
        let ratio = end as f64 / segments;
        // Beside the segments there are headers of frames; the time of the last frame is not in it.
        assert!((0.99..1.02).contains(&ratio), "{bit_per_s} bit/s: {ratio}");
    }
}

#[test]
fn classes_have_their_shares_of_a_rate() {
    let classes = vec![PepClass { dscp: 46, share: 75.0 }, PepClass { dscp: 0, share: 25.0 }];
    let rate_bit_per_s = NonZeroU64::new(1_000_000);
    let mut scheduler = Scheduler::new(Policy { classes, rate_bit_per_s, ..policy(PepSchedule::Fair, 1) });
    for class in 0..2 {
        scheduler.add(class, class, class as usize, asked("u=3"));
        scheduler.offer(class, 1_000_000);
        scheduler.finish(class);
    }
    let mut sent = [0, 0];
    sent_at_a_rate(&mut scheduler, |_, now, grant| {
        if now < 4_000_000_000 {
            sent[grant.connection] += grant.bytes;
        }
    });
    let share = sent[0] as f64 / (sent[0] + sent[1]) as f64;
    assert!((0.73..0.77).contains(&share), "{sent:?}");
    let bit_per_s = (sent[0] + sent[1]) as f64 * 8.0 / 4.0;
    assert!((0.92e6..0.97e6).contains(&bit_per_s), "{bit_per_s} bit/s of payload at 1 Mbit/s of the link");
}
