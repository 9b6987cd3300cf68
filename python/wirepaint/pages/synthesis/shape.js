// Drives the requests of a shape that was made from rehearsals. _w(children, ms): the calling script computes for ms
// milliseconds and then asks for each child [kind, url, delay in ms, when, resources, option]: that long after the last
// byte of the caller and of the resources ("" is the document); where "when" holds 2, after DOMContentLoaded, and where it holds 4, after
// the load event. Where it holds 1 the load event is held back from the last of these bytes until the child is asked
// for, by a frame that is never finished (see runtime.js). _w.burn(ms) computes, _w.lay(ms) does so ahead of the first
// layout, _w.ready(ms) when the document is parsed.
var _w=(function(){
var D=document,P=performance,n=0,h,table={},ends={},waiting=[];
P.setResourceTimingBufferSize(5000);
function hold(){if(!n++){h=D.createElement("iframe");h.hidden=true;D.documentElement.appendChild(h);
h.contentDocument.open();if(D.readyState=="loading"){n++;D.addEventListener("DOMContentLoaded",free)}}}
function free(){if(!--n){h.contentDocument.close();h.remove()}}
function add(t,a){var e=D.createElement(t),k;for(k in a)e[k]=a[k];
(t!="img"&&t!="iframe"&&D.head||D.body||D.documentElement).appendChild(e)}
function get(u,o){if(o.body)o.body="x".repeat(o.body);
fetch(u,o).then(function(r){return r.arrayBuffer()}).catch(function(){})}
function make(c){var k=c[0],u=c[1],o=c[5];
if(k=="s")add("script",{src:u,fetchPriority:o||"auto"});
else if(k=="c")add("link",{rel:"stylesheet",href:u});
else if(k=="i")add("img",{src:u});
else if(k=="p")new Image().src=u;
else if(k=="f")add("iframe",{src:u});
else if(k=="t")new FontFace("w","url("+JSON.stringify(u)+")").load().catch(function(){});
else get(u,o||{})}
function after(t,f){t-=P.now();if(t>1)setTimeout(f,t);else f()}
function look(){P.getEntriesByType("resource").forEach(function(e){ends[e.name]=ends[e.name]||e.responseEnd});
waiting=waiting.filter(function(a){return!a()})}
new PerformanceObserver(look).observe({type:"resource",buffered:true});
["load","error"].forEach(function(k){D.addEventListener(k,look,true)});
function ask(l,t){l.forEach(function(c){var w=c[4]||[],m=c[3]||0;
function go(){make(c);if(m&1)free()}
function due(){var e=t,i;
for(i=0;i<w.length;i++){if(!ends[w[i]])return false;e=Math.max(e,ends[w[i]])}
if(m&1)hold();after(e+(c[2]||0),go);return true}
function wait(){if(!due())waiting.push(due)}
if(m&4)D.readyState=="complete"?make(c):addEventListener("load",function(){setTimeout(make,c[2],c)});
else if(m&2)D.readyState!="loading"?wait():D.addEventListener("DOMContentLoaded",function(){t=P.now();wait()});
else wait()})}
function w(l,ms){var s=D.currentScript,src=s&&s.src,now=P.now(),e;
if(!l.forEach){l=table[l];ms=l[1];l=l[0]}
if(src){
e=P.getEntriesByName(src)[0];
w.burn(ms);
return ask(l,e&&e.responseEnd||now)}
l.forEach(function(c){c[4]=(c[4]||[]).concat("")});
hold();ask(l,0);
(function own(){
if(!(ends[""]=P.getEntriesByType("navigation")[0].responseEnd))return setTimeout(own,4);
look();free()})()}
w.burn=function(ms){ms+=P.now();while(P.now()<ms);};
w.lay=function(ms){requestAnimationFrame(function(){w.burn(ms)})};
w.ready=function(ms){D.addEventListener("DOMContentLoaded",function(){w.burn(ms)})};
w.table=table;return w})();
