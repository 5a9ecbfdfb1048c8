"""Which channels of a model can be removed together, and the smaller model without them."""

from xnn_tf.channels.groups import ChannelGroup, ChannelGroups, channel_groups

__all__ = ["ChannelGroup", "ChannelGroups", "channel_groups"]
