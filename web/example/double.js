// A hyperty that runs in a Worker: it doubles numbers.
export default {
  request(message) {
    const { value } = message.body;
    if (typeof value !== "number") throw new Refusal(400, "send a number");
    return value * 2;
  },
};
