//! Scripts that have arrived, and the modules that they import. Imports are requested when the importing
//! script's text arrives, long before it runs. It runs when all of them have arrived, after them (HTML,
//! "fetch the descendants of and link a module script").

use super::{Renderer, Task};
use crate::page::Element;
use wirepaint_units::Time;

impl Renderer {
    /// A script has arrived in full.
    pub(super) fn script_came(&mut self, now: Time, resource: u32) {
        for child in self.links[resource].modules.clone() {
            let root = self.links[child].root;
            if self.states[root as usize].discovered.is_none() {
                self.queue(Task::Make(root));
            }
        }
        match self.links[resource].element {
            Some(Element::Script | Element::DeferredScript) => {}
            _ if self.links[resource].is_module => {}
            _ => self.modules.push(resource),
        }
        let (ready, waiting) =
            std::mem::take(&mut self.modules).into_iter().partition(|&m| self.imports_came(m));
        self.modules = waiting;
        let ready: Vec<u32> = ready;
        for module in ready {
            self.queue(Task::Run(module));
        }
        if let Some(owner) = self.states[resource as usize].owner {
            self.parse(now, owner);
        }
    }

    /// True when all direct and indirect imports of `resource` have arrived.
    pub(super) fn imports_came(&self, resource: u32) -> bool {
        self.unrun(resource).iter().all(|&part| self.states[part as usize].last_byte.is_some())
    }

    /// Modules to run with `resource`: its direct and indirect imports that have not run, each after its own
    /// imports; `resource` is the last.
    pub(super) fn unrun(&self, resource: u32) -> Vec<u32> {
        let mut found = Vec::new();
        let mut open = vec![(resource, false)];
        let mut seen = std::collections::BTreeSet::new();
        while let Some((module, imported)) = open.pop() {
            if imported {
                found.push(module);
            } else if seen.insert(module) {
                open.push((module, true));
                let modules = &self.links[module].modules;
                let unfinished = |&&m: &&u32| self.states[m as usize].finished.is_none();
                open.extend(modules.iter().rev().filter(unfinished).map(|&m| (m, false)));
            }
        }
        found
    }
}
