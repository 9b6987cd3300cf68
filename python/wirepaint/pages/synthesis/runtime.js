// Drives the requests of a page whose bodies are synthesised. _w(children) asks for each child
// [kind, url, delay in ms, after load, option, children] that long after the last byte of the calling
// script (or document) arrived; children of data follow the arrival of the data. Until then the load
// event is held back by a frame that is never finished, so that it waits for the requests that it
// waited for in the recording. The frame stays at least until DOMContentLoaded: each new one makes Chromium
// lay the page out, and images that are there before the body are then asked for too early.
var _w=(function(){
var D=document,P=performance,n=0,h,table={};
P.setResourceTimingBufferSize(5000);
function hold(){if(!n++){h=D.createElement("iframe");h.hidden=true;D.documentElement.appendChild(h);
h.contentDocument.open();if(D.readyState=="loading"){n++;D.addEventListener("DOMContentLoaded",free)}}}
function free(){if(!--n){h.contentDocument.close();h.remove()}}
function add(t,a){var e=D.createElement(t),k;for(k in a)e[k]=a[k];
(t!="img"&&t!="iframe"&&D.head||D.body||D.documentElement).appendChild(e)}
function get(u,o,l){if(o.body)o.body="x".repeat(o.body);
var early=l.some(function(c){return!c[3]});if(early)hold();
function then(){at(l,P.now());if(early)free()}
fetch(u,o).then(function(r){return r.arrayBuffer()}).then(then,then)}
function make(c){var k=c[0],u=c[1],o=c[4];
if(k=="s")add("script",{src:u,fetchPriority:o||"auto"});
else if(k=="c")add("link",{rel:"stylesheet",href:u});
else if(k=="i")add("img",{src:u});
else if(k=="p")new Image().src=u;
else if(k=="f")add("iframe",{src:u});
else if(k=="t")new FontFace("w","url("+JSON.stringify(u)+")").load().catch(function(){});
else get(u,o,c[5]||[])}
function at(l,t){l.forEach(function(c){if(!c[3])hold();setTimeout(function(){
if(!c[3]){make(c);free()}
else if(D.readyState=="complete")make(c);
else addEventListener("load",function(){setTimeout(make,c[2],c)})},Math.max(0,t+c[2]-P.now()))})}
function w(l){var s=D.currentScript,src=s&&s.src,now=P.now(),later;
if(!l.forEach)l=table[l];
if(src){
var e=P.getEntriesByName(src)[0];
later=l.filter(function(c){return c[2]||c[3]});
l.forEach(function(c){if(later.indexOf(c)<0)make(c)});
return at(later,e&&e.responseEnd||now)}
at(l.filter(function(c){return!c[2]&&!c[3]}),now);
later=l.filter(function(c){return c[2]||c[3]});
if(!later.length)return;
hold();
(function wait(){
var t=P.getEntriesByType("navigation")[0].responseEnd;
if(!t)return setTimeout(wait,4);
at(later,t);free()})()}
w.table=table;return w})();
