use crate::config::{Action, Counted, Scripted};
use std::collections::VecDeque;

/// Pending actions on single packets, and the count of packets that have passed. Nothing is random.
#[derive(Debug)]
pub(crate) struct Script {
    data: Count,
    bare: Count,
}

#[derive(Debug, Default)]
struct Count {
    seen: u64,
    left: VecDeque<(u64, Action)>,
}

impl Script {
    /// `scripted` is checked: ascending in each count.
    pub fn new(scripted: &[Scripted]) -> Script {
        let mut script = Script { data: Count::default(), bare: Count::default() };
        for Scripted { what, nth, action } in scripted {
            script.count(*what).left.push_back((*nth, *action));
        }
        script
    }

    /// True when no action is pending.
    pub fn is_over(&self) -> bool {
        self.data.left.is_empty() && self.bare.left.is_empty()
    }

    /// Counts an arriving packet. Returns the action on it.
    pub fn next(&mut self, what: Option<Counted>) -> Option<Action> {
        let count = self.count(what?);
        count.seen += 1;
        match count.left.front() {
            Some((nth, action)) if *nth == count.seen => {
                let action = *action;
                count.left.pop_front();
                Some(action)
            }
            _ => None,
        }
    }

    fn count(&mut self, what: Counted) -> &mut Count {
        match what {
            Counted::Data => &mut self.data,
            Counted::Bare => &mut self.bare,
        }
    }
}
