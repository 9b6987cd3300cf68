//! Which hook each thread is in, so that one that never ends can be named.

use crate::Algorithm;
use std::collections::HashMap;
use std::sync::atomic::{AtomicPtr, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

/// The calls of one thread.
struct Calls {
    /// Begins and ends of hooks so far; odd during a hook.
    moments: AtomicU64,
    algorithm: AtomicPtr<Algorithm>,
}

static OF_THREADS: Mutex<Vec<Arc<Calls>>> = Mutex::new(Vec::new());

thread_local! {
    static OWN: Arc<Calls> = {
        let own = Arc::new(Calls { moments: AtomicU64::new(0), algorithm: AtomicPtr::default() });
        let mut threads = OF_THREADS.lock().expect("no holder panics");
        // Those of threads that have ended are held by nobody else.
        threads.retain(|calls| Arc::strong_count(calls) > 1);
        threads.push(Arc::clone(&own));
        own
    };
}

/// Calls a hook of the algorithm.
pub(crate) fn call<T>(algorithm: &'static Algorithm, hook: impl FnOnce() -> T) -> T {
    OWN.with(|own| {
        // Only this thread writes, so that no locked instruction is needed.
        let moment = own.moments.load(Ordering::Relaxed);
        own.algorithm.store(std::ptr::from_ref(algorithm).cast_mut(), Ordering::Relaxed);
        own.moments.store(moment + 1, Ordering::Relaxed);
        let result = hook();
        own.moments.store(moment + 2, Ordering::Relaxed);
        result
    })
}

/// Finds hooks that do not end, by looking again and again.
#[derive(Default)]
pub struct Watch {
    /// By thread: the moment it was at, and in how many looks.
    seen: HashMap<usize, (u64, u32)>,
}

impl Watch {
    /// The name of an algorithm one of whose hooks has lasted for `most` looks.
    pub fn look(&mut self, most: u32) -> Option<&'static str> {
        let threads = OF_THREADS.lock().expect("no holder panics").clone();
        threads.into_iter().find_map(|calls| {
            let now = calls.moments.load(Ordering::Relaxed);
            let (moment, looks) = self.seen.entry(Arc::as_ptr(&calls) as usize).or_default();
            *looks = if *moment == now && now % 2 == 1 { *looks + 1 } else { 0 };
            *moment = now;
            // SAFETY: algorithms are never unloaded, and a thread in a hook has stored one.
            let algorithm = unsafe { calls.algorithm.load(Ordering::Relaxed).as_ref() };
            algorithm.filter(|_| *looks >= most).map(Algorithm::name)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::channel;

    #[test]
    fn a_hook_that_lasts_is_named_and_one_that_ends_is_not() {
        let algorithm = crate::find("std").unwrap();
        let (begun, begins) = channel();
        let (end, ends) = channel::<()>();
        let thread = std::thread::spawn(move || {
            call(algorithm, || ());
            call(algorithm, || {
                begun.send(()).unwrap();
                ends.recv().unwrap();
            });
        });
        begins.recv().unwrap();
        let mut watch = Watch::default();
        let looks: Vec<_> = (0..4).map(|_| watch.look(3)).collect();
        assert_eq!(looks, [None, None, None, Some("std")]);
        end.send(()).unwrap();
        thread.join().unwrap();
        assert_eq!(watch.look(1), None);
    }
}
