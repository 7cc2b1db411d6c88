// The certified provider `oidc-provider` on loopback. It prints its port, reads the addresses of the way back, then serves.
// Everybody is who they type that they are; of mallory alone the address is not verified.
import { createServer } from "node:http";
import { createInterface } from "node:readline";

const [folder, secret] = process.argv.slice(2);
const { default: Provider } = await import(`${folder}/node_modules/oidc-provider/lib/index.js`);
const server = createServer();
server.listen(0, "127.0.0.1", () => console.log(server.address().port));
createInterface({ input: process.stdin }).once("line", (redirects) => {
  const provider = new Provider(`http://127.0.0.1:${server.address().port}`, {
    clients: [{ client_id: "the-edge", client_secret: secret, redirect_uris: redirects.split(" ") }],
    claims: { openid: ["sub"], email: ["email", "email_verified"], profile: ["name"] },
    pkce: { required: () => true },
    features: { devInteractions: { enabled: true } },
    findAccount: (ctx, id) => ({
      accountId: id,
      claims: () => ({ sub: id, email: `${id}@example.com`, email_verified: id !== "mallory" }),
    }),
  });
  server.on("request", provider.callback());
  console.log("ready");
});
