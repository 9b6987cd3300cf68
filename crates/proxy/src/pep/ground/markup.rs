//! What HTML and CSS refer to, found while they pass through.

use cssparser::{Parser, ParserInput, Token};
use lol_html::{HtmlRewriter, Settings, element, text};
use std::cell::RefCell;
use std::rc::Rc;
use url::Url;

/// Most bytes of a style sheet, or of the style elements of a document, that are read.
const CSS_LIMIT: usize = 1 << 20;
/// Deepest nesting of blocks in CSS that is followed.
const CSS_DEPTH: usize = 32;

/// How a browser uses a resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Use {
    Style,
    Script,
    /// A script that is fetched as CORS asks, in the page's own origin with credentials.
    Module,
    Image,
    Frame,
    /// What a `preload` names, a font.
    Font,
    /// Of the page's rehearsals, without a type that matters.
    Other,
}

/// A resource that a page will need.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    pub url: Url,
    pub used_as: Use,
    /// `crossorigin` is set: the request names its origin.
    pub cors: bool,
}

/// What has been found and not taken.
#[derive(Default)]
struct Finds {
    /// Address that others are relative to.
    base: Option<Url>,
    found: Vec<Found>,
    /// CSS that can be read.
    css: Vec<u8>,
    /// The beginning of a style element.
    style: Vec<u8>,
}

impl Finds {
    fn add(&mut self, reference: &str, used_as: Use, cors: bool) {
        let url = self.base.as_ref().and_then(|base| base.join(reference.trim()).ok());
        let url = url.filter(|url| matches!(url.scheme(), "http" | "https") && url.host_str().is_some());
        if let (Some(mut url), false) = (url, reference.trim().is_empty()) {
            url.set_fragment(None);
            self.found.push(Found { url, used_as, cors });
        }
    }

    fn add_css(&mut self, bytes: &[u8]) {
        extend(&mut self.css, bytes);
    }

    /// Adds a part of a style element, which is read once it is whole.
    fn add_style(&mut self, part: &[u8], is_last: bool) {
        extend(&mut self.style, part);
        if is_last {
            let style = std::mem::take(&mut self.style);
            self.add_css(&style);
            // Closes what the element left open.
            self.read_css();
        }
    }

    fn read_css(&mut self) {
        let css = std::mem::take(&mut self.css);
        let css = String::from_utf8_lossy(&css);
        let mut input = ParserInput::new(&css);
        references(&mut Parser::new(&mut input), 0, &mut |reference, used_as| {
            self.add(reference, used_as, false);
        });
    }
}

fn extend(css: &mut Vec<u8>, bytes: &[u8]) {
    let room = CSS_LIMIT.saturating_sub(css.len());
    css.extend_from_slice(&bytes[..bytes.len().min(room)]);
}

/// A document or style sheet that is read along.
pub enum Finder {
    Html(Box<Html>),
    Css(Box<Css>),
}

type Rewriter = HtmlRewriter<'static, fn(&[u8])>;

/// A document.
pub struct Html {
    /// `None` behind its end, or where the tokenizer gave up.
    rewriter: Option<Rewriter>,
    finds: Rc<RefCell<Finds>>,
}

/// A style sheet.
pub struct Css {
    finds: Finds,
}

impl Finder {
    /// Reads a document at this address.
    pub fn html(address: &Url) -> Finder {
        let finds = Finds { base: Some(address.clone()), ..Finds::default() };
        let finds = Rc::new(RefCell::new(finds));
        let discard: fn(&[u8]) = |_| {};
        let rewriter = Some(HtmlRewriter::new(settings(&finds), discard));
        Finder::Html(Box::new(Html { rewriter, finds }))
    }

    /// Reads a style sheet at this address.
    pub fn css(address: &Url) -> Finder {
        Finder::Css(Box::new(Css { finds: Finds { base: Some(address.clone()), ..Finds::default() } }))
    }

    /// Takes the next bytes. Returns what they refer to.
    pub fn feed(&mut self, bytes: &[u8]) -> Vec<Found> {
        match self {
            Finder::Html(html) => {
                if let Some(rewriter) = &mut html.rewriter
                    && rewriter.write(bytes).is_err()
                {
                    html.rewriter = None;
                }
                std::mem::take(&mut html.finds.borrow_mut().found)
            }
            Finder::Css(css) => {
                css.finds.add_css(bytes);
                Vec::new()
            }
        }
    }

    /// There are no more bytes. Returns what is found only then.
    pub fn end(&mut self) -> Vec<Found> {
        match self {
            Finder::Html(html) => {
                if let Some(rewriter) = html.rewriter.take() {
                    // What it finds at its end it has found.
                    let _ = rewriter.end();
                }
                std::mem::take(&mut html.finds.borrow_mut().found)
            }
            Finder::Css(css) => {
                css.finds.read_css();
                std::mem::take(&mut css.finds.found)
            }
        }
    }
}

fn settings(finds: &Rc<RefCell<Finds>>) -> Settings<'static, 'static> {
    let [base, link, script, image, frame, poster, style, styled] = std::array::from_fn(|_| finds.clone());
    Settings::new()
        .append_element_content_handler(element!("base[href]", move |element| {
            let finds = &mut *base.borrow_mut();
            let href = element.get_attribute("href").unwrap_or_default();
            finds.base = finds.base.as_ref().and_then(|base| base.join(&href).ok()).or(finds.base.take());
            Ok(())
        }))
        .append_element_content_handler(element!("link[href][rel]", move |element| {
            let attribute = |name| element.get_attribute(name).unwrap_or_default().to_ascii_lowercase();
            let rel = attribute("rel");
            let is = |name: &str| rel.split_ascii_whitespace().any(|word| word == name);
            let used_as = match attribute("as").as_str() {
                _ if is("stylesheet") && !is("alternate") => Use::Style,
                _ if is("modulepreload") => Use::Module,
                "script" if is("preload") => Use::Script,
                "style" if is("preload") => Use::Style,
                "image" if is("preload") => Use::Image,
                "font" if is("preload") => Use::Font,
                _ => return Ok(()),
            };
            let href = element.get_attribute("href").unwrap_or_default();
            link.borrow_mut().add(&href, used_as, element.has_attribute("crossorigin"));
            Ok(())
        }))
        .append_element_content_handler(element!("script[src]:not([nomodule])", move |element| {
            let is_module =
                element.get_attribute("type").is_some_and(|kind| kind.eq_ignore_ascii_case("module"));
            let used_as = if is_module { Use::Module } else { Use::Script };
            let src = element.get_attribute("src").unwrap_or_default();
            script.borrow_mut().add(&src, used_as, element.has_attribute("crossorigin"));
            Ok(())
        }))
        // Of several sources the browser chooses by its view port, which the ground side does not know. A lazy image
        // is fetched when it comes near the view port.
        .append_element_content_handler(element!("img[src]:not([srcset])", move |element| {
            let lazy =
                element.get_attribute("loading").is_some_and(|value| value.eq_ignore_ascii_case("lazy"));
            if !lazy {
                let src = element.get_attribute("src").unwrap_or_default();
                image.borrow_mut().add(&src, Use::Image, element.has_attribute("crossorigin"));
            }
            Ok(())
        }))
        .append_element_content_handler(element!("iframe[src]:not([srcdoc])", move |element| {
            let lazy =
                element.get_attribute("loading").is_some_and(|value| value.eq_ignore_ascii_case("lazy"));
            if !lazy {
                frame.borrow_mut().add(&element.get_attribute("src").unwrap_or_default(), Use::Frame, false);
            }
            Ok(())
        }))
        .append_element_content_handler(element!("video[poster]", move |element| {
            poster.borrow_mut().add(&element.get_attribute("poster").unwrap_or_default(), Use::Image, false);
            Ok(())
        }))
        .append_element_content_handler(element!("[style]", move |element| {
            let finds = &mut *styled.borrow_mut();
            finds.add_css(element.get_attribute("style").unwrap_or_default().as_bytes());
            finds.read_css();
            Ok(())
        }))
        .append_element_content_handler(text!("style", move |chunk| {
            style.borrow_mut().add_style(chunk.as_str().as_bytes(), chunk.last_in_text_node());
            Ok(())
        }))
}

/// Calls `found` for each address in CSS. Fonts are left out: most style sheets declare more than are used.
fn references(parser: &mut Parser<'_, '_>, depth: usize, found: &mut impl FnMut(&str, Use)) {
    let mut imports = false;
    let mut skips_block = false;
    while let Ok(token) = parser.next_including_whitespace_and_comments() {
        let mut nested = false;
        let mut is_url = false;
        match token {
            Token::AtKeyword(name) => {
                imports = name.eq_ignore_ascii_case("import");
                skips_block = name.eq_ignore_ascii_case("font-face");
                continue;
            }
            Token::UnquotedUrl(address) => {
                found(address, if imports { Use::Style } else { Use::Image });
                imports = false;
            }
            Token::QuotedString(address) if imports => {
                found(address, Use::Style);
                imports = false;
            }
            Token::Function(name) => {
                is_url = name.eq_ignore_ascii_case("url");
                nested = true;
            }
            Token::CurlyBracketBlock => {
                nested = !std::mem::take(&mut skips_block);
                imports = false;
            }
            Token::ParenthesisBlock | Token::SquareBracketBlock => nested = true,
            Token::Semicolon => imports = false,
            _ => {}
        }
        if nested && depth < CSS_DEPTH {
            let used_as = if imports { Use::Style } else { Use::Image };
            let _ = parser.parse_nested_block(|inner| -> Result<(), cssparser::ParseError<'_, ()>> {
                if is_url {
                    if let Ok(address) = inner.expect_string() {
                        found(address, used_as);
                    }
                } else {
                    references_in(inner, depth + 1, found);
                }
                Ok(())
            });
            imports &= !is_url;
        }
    }
}

/// Breaks the recursion of generic types: each level would be an instance of its own.
fn references_in(parser: &mut Parser<'_, '_>, depth: usize, found: &mut dyn FnMut(&str, Use)) {
    references(parser, depth, &mut |address, used_as| found(address, used_as));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(mut finder: Finder, text: &str, step: usize) -> Vec<(String, Use, bool)> {
        let mut all = Vec::new();
        for part in text.as_bytes().chunks(step) {
            all.extend(finder.feed(part));
        }
        all.extend(finder.end());
        all.into_iter().map(|found| (found.url.to_string(), found.used_as, found.cors)).collect()
    }

    fn address() -> Url {
        Url::parse("https://a.test/dir/page").unwrap()
    }

    #[test]
    fn a_document_names_what_the_browser_will_fetch_wherever_it_is_cut() {
        let text = r#"<!doctype html><head><link rel="stylesheet" href="a.css"><link rel=preload as=font href=/f crossorigin>
            <link rel="icon" href="/i"><script src="//b.test/s.js" crossorigin></script><script src=n.js nomodule></script>
            <script>var x = '<img src="no.png">';</script><style>p { background: url(bg.png) }</style></head>
            <!-- <img src="hidden.png"> --><img src="one.png#part"><img src="no" srcset="big 2x"><img src=l loading=lazy>
            <img src="data:image/gif;base64,xx"><iframe src="/frame"></iframe><script type=module src=m.js></script>"#;
        let expected = [
            ("https://a.test/dir/a.css", Use::Style, false),
            ("https://a.test/f", Use::Font, true),
            ("https://b.test/s.js", Use::Script, true),
            ("https://a.test/dir/bg.png", Use::Image, false),
            ("https://a.test/dir/one.png", Use::Image, false),
            ("https://a.test/frame", Use::Frame, false),
            ("https://a.test/dir/m.js", Use::Module, false),
        ];
        let expected: Vec<_> =
            expected.into_iter().map(|(url, used, cors)| (url.to_owned(), used, cors)).collect();
        for step in [1, 7, 100, text.len()] {
            assert_eq!(found(Finder::html(&address()), text, step), expected, "step {step}");
        }
    }

    #[test]
    fn a_base_changes_what_references_mean() {
        let text = r#"<base href="/other/"><img src="x.png">"#;
        assert_eq!(found(Finder::html(&address()), text, 9)[0].0, "https://a.test/other/x.png");
    }

    #[test]
    fn a_style_sheet_names_imports_and_images_but_no_fonts() {
        let text = r#"@import "one.css"; @import url("two.css") screen; /* url(no.png) */
            @font-face { font-family: x; src: url(f.woff2) } p::before { content: "url(no)"; background: URL( 'b.png' ) }
            @media print { q { background: url(/c.png), image-set(url(d.png) 2x) } }"#;
        let names: Vec<_> =
            found(Finder::css(&address()), text, 5).into_iter().map(|each| (each.0, each.1)).collect();
        let expected = [
            ("https://a.test/dir/one.css", Use::Style),
            ("https://a.test/dir/two.css", Use::Style),
            ("https://a.test/dir/b.png", Use::Image),
            ("https://a.test/c.png", Use::Image),
            ("https://a.test/dir/d.png", Use::Image),
        ];
        assert_eq!(names, expected.map(|(url, used)| (url.to_owned(), used)));
    }

    #[test]
    fn nonsense_is_survived() {
        let deep = "{".repeat(100_000) + "url(x)";
        assert!(found(Finder::css(&address()), &deep, 1000).is_empty());
        let deep = "<div style='a'>".repeat(20_000) + "<img src=x.png>";
        assert!(found(Finder::html(&address()), &deep, 1000).len() <= 1);
    }
}
