"""A page of trainer report, as an XML tree and as a browser's parser sees it: what the tests of
src/report share."""
import csv, html.parser, json, re, sys
import xml.etree.ElementTree as tree

SPACE = "{http://www.w3.org/1999/xhtml}"
failures = []

def check(holds, *words):
    if not holds:
        failures.append(" ".join(str(w) for w in words))

def end():
    for failure in failures[:10]:
        print(failure)
    sys.exit(1 if failures else 0)

class Parser(html.parser.HTMLParser):
    EMPTY = {"meta", "br", "img"}
    def __init__(self):
        super().__init__()
        self.open, self.links = [], []
    def handle_starttag(self, tag, attributes):
        self.open += [] if tag in self.EMPTY else [tag]
        check(tag not in ("script", "link", "iframe", "object", "base", "b1"), "a", tag)
        for name, value in attributes:
            check(not name.startswith("on") and name != "srcset", tag, "has", name, value)
            check(name != "src" or value.startswith(("data:image/bmp;base64,", "data:image/png;base64,")),
                  tag, "loads", value)
            if name == "href":
                self.links.append(value)
    def handle_startendtag(self, tag, attributes):
        self.handle_starttag(tag, attributes)
        if tag not in self.EMPTY:
            self.open.pop()
    def handle_endtag(self, tag):
        check(self.open and self.open[-1] == tag, "closes", tag, "in", self.open)
        if self.open:
            self.open.pop()

class Page:
    def __init__(self, path):
        self.source = open(path, encoding="utf-8", newline="").read()
        self.root = tree.fromstring(self.source)
        parser = Parser()
        parser.feed(self.source)
        check(not parser.open, "not closed:", parser.open)
        ids = {e.get("id") for e in self.root.iter() if e.get("id")}
        for link in parser.links:
            check(link[0] == "#" and link[1:] in ids, "a link to", link)
        style = self.root.find(f".//{SPACE}style").text
        check("url(" not in style and "@import" not in style, "the style loads something")
        for scheme in ("prefers-color-scheme:dark", "@media print"):
            check(scheme in style, "no", scheme)
        check(style.count("{") == style.count("}"), "the style is not closed")
        check(re.findall(r"https?://\S+", self.source.replace("http://www.w3.org/1999/xhtml", "")) == [],
              "an address in it")
        for bad in ("nan%", "inf%", '"nan', '"-nan', "nan ", "NaN"):
            check(bad not in re.sub('base64,[^"]*', "", self.source.split("</style>")[1]), bad, "in it")
    def section(self, name):
        return next((s for s in self.root.iter(SPACE + "section") if s.get("id") == name), None)
    def text(self, name):
        section = self.section(name)
        return "" if section is None else words(section)
    def tiles(self):
        return {words(t[1]): words(t[0]) for t in self.root.iter(SPACE + "div") if t.get("class") == "tile"}
    def rows(self, name):
        return [[words(c) for c in r] for r in self.section(name).iter(SPACE + "tr")]

def words(element):
    return " ".join("".join(element.itertext()).split())

def number(text):
    return float(text.replace(",", "").split(" ")[0])

def seconds(text):
    value, unit = text.replace(",", "").split(" ")
    return float(value) * {"s": 1, "ms": 1e-3, "µs": 1e-6}[unit]
