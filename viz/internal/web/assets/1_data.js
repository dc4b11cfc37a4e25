const read = id => JSON.parse(document.getElementById(id).textContent);
const list = document.getElementById('main');
for (const p of read('patch').places || []) {
  const item = document.createElement('pre');
  item.textContent = 'n' + p.n + ' ' + p.text;
  list.append(item);
}
