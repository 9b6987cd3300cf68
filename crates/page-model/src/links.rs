//! The relations between a page's resources.

use crate::page::{Cause, Element, Kind, Page};

/// Relations of one resource.
#[derive(Clone, Debug)]
pub struct Link {
    /// Resources that it causes, alone or with others.
    pub children: Vec<u32>,
    /// Target of its redirect.
    pub redirect: Option<u32>,
    /// First of the redirects that lead to it; itself without redirects.
    pub root: u32,
    /// Target of the redirects that begin with it; itself without redirects.
    pub tail: u32,
    /// The element of a document that names its root, if the final resource is of the element's kind.
    pub element: Option<Element>,
    /// True for a stylesheet that another one imports.
    pub imported: bool,
    /// True for a module that only other modules request.
    pub is_module: bool,
    /// The modules that it imports and that nothing else requests.
    pub modules: Vec<u32>,
}

/// The relations between a page's resources, by resource.
#[derive(Clone, Debug)]
pub struct Links(Vec<Link>);

impl std::ops::Index<u32> for Links {
    type Output = Link;

    fn index(&self, resource: u32) -> &Link {
        &self.0[resource as usize]
    }
}

impl Links {
    /// Links of a page that [`Page::check`] accepts.
    pub fn new(page: &Page) -> Links {
        let count = page.resources.len() as u32;
        let mut links: Vec<Link> = (0..count)
            .map(|number| Link {
                children: Vec::new(),
                redirect: page.redirect_of(number),
                root: number,
                tail: page.tail(number),
                element: None,
                imported: false,
                is_module: false,
                modules: Vec::new(),
            })
            .collect();
        for number in 0..count {
            let at = number as usize;
            let cause = page.resources[at].cause;
            if let Some(cause) = cause {
                links[cause.by() as usize].children.push(number);
            }
            for &also in &page.resources[at].also {
                links[also as usize].children.push(number);
            }
            if let Some(Cause::Redirect { by }) = cause {
                let Link { root, element, imported, .. } = links[by as usize];
                (links[at].root, links[at].element, links[at].imported) = (root, element, imported);
                continue;
            }
            let kind = page.resources[links[at].tail as usize].kind;
            if let Some(Cause::Import { by }) = cause {
                links[at].imported = kind == Kind::Css;
                let to = links[at].tail;
                for &other in std::iter::once(&by).chain(&page.resources[at].also) {
                    let from = page.tail(other) as usize;
                    let classic = links[other as usize].element == Some(Element::Script);
                    if kind == Kind::Js && page.resources[from].kind == Kind::Js && !classic {
                        links[from].modules.push(to);
                        // A module that a document requests too runs by itself.
                        links[to as usize].is_module |= from == page.tail(by) as usize;
                    }
                }
            }
            if let Some(Cause::Markup { by, element, .. }) = cause
                && links[by as usize].redirect.is_none()
            {
                links[at].element = Some(match element {
                    Element::Stylesheet if kind != Kind::Css => Element::Other,
                    Element::Script | Element::AsyncScript | Element::DeferredScript if kind != Kind::Js => {
                        Element::Other
                    }
                    fits => fits,
                });
            }
        }
        Links(links)
    }
}
