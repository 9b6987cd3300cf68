// Drives the requests of a page whose bodies are synthesised. _w(children) asks for each child
// [kind, url, delay ms, after load, option] that long after the calling script's (or document's)
// last byte arrived. Until then the load event is held back by a frame that is never finished,
// so that it waits for the requests that it waited for in the recording.
var _w=(function(){
var D=document,P=performance,n=0,h,table={};
P.setResourceTimingBufferSize(5000);
function add(t,a){var e=D.createElement(t),k;for(k in a)e[k]=a[k];
(t!="img"&&t!="iframe"&&D.head||D.body||D.documentElement).appendChild(e)}
function make(c){var k=c[0],u=c[1],o=c[4];
if(k=="s")add("script",{src:u,fetchPriority:o||"auto"});
else if(k=="c")add("link",{rel:"stylesheet",href:u});
else if(k=="i")add("img",{src:u});
else if(k=="p")new Image().src=u;
else if(k=="f")add("iframe",{src:u});
else if(k=="t")new FontFace("w","url("+JSON.stringify(u)+")").load().catch(function(){});
else{if(o.body)o.body="x".repeat(o.body);
fetch(u,o).then(function(r){return r.arrayBuffer()}).catch(function(){})}}
function hold(){if(!n++){h=D.createElement("iframe");h.hidden=true;D.documentElement.appendChild(h);
h.contentDocument.open()}}
function free(){if(!--n){h.contentDocument.close();h.remove()}}
function w(l){var s=D.currentScript,src=s&&s.src;if(!l.forEach)l=table[l];
var now=P.now(),due=l.filter(function(c){return c[2]||c[3]||!src});
l.forEach(function(c){if(due.indexOf(c)<0)make(c)});
if(!due.length)return;
due.forEach(function(c){if(!c[3])hold()});
function go(){
var e=src?P.getEntriesByName(src)[0]:P.getEntriesByType("navigation")[0],t=e?e.responseEnd:now;
if(!t&&!src&&due.some(function(c){return c[2]})){
due=due.filter(function(c){if(c[2]||c[3])return true;make(c);free()});return setTimeout(go,4)}
due.forEach(function(c){setTimeout(function(){
if(!c[3]){make(c);free()}
else if(D.readyState=="complete")make(c);
else addEventListener("load",function(){setTimeout(make,c[2],c)})},Math.max(0,(t||now)+c[2]-P.now()))})}
if(src)go();else setTimeout(go,0)}
w.table=table;return w})();
